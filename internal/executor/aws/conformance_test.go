package aws

import (
	"os"
	"testing"

	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestMain(m *testing.M) { os.Exit(executortest.Main(m)) }

func TestConformance(t *testing.T) {
	executortest.Run(t, executortest.Provider{New: executortest.EC2World, Execute: Execute, Visible: executortest.Agent})
}
