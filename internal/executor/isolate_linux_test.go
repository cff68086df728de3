package executor

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAnExecutorDoesNotOutliveAnAgentThatIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(self, "as", "agent", file)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := awaitPID(t, file)
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	agent.Wait()
	awaitGone(t, pid)
}
