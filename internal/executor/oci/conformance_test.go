package oci

import (
	"os"
	"testing"

	"github.com/tasuki-io/tasuki/internal/executor/executortest"
)

func TestMain(m *testing.M) { os.Exit(executortest.Main(m)) }

func TestConformance(t *testing.T) {
	executortest.Run(t, executortest.Provider{New: executortest.OCIWorld, Execute: Execute, Visible: executortest.Agent})
}
