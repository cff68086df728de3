package trial

import (
	"fmt"
	"net"
	"os"
	"strings"
)

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Tail is the end of a log file after its path, for an error message.
func Tail(path string) string {
	const lines = 20
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return path + ":\n" + strings.Join(all[max(0, len(all)-lines):], "\n")
}
