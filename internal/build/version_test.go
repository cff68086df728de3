package build

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	of := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: version}, Settings: settings}
	}
	commit, clean, dirty := debug.BuildSetting{Key: "vcs.revision", Value: "0c165ad"}, debug.BuildSetting{Key: "vcs.modified", Value: "false"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3, go1.26.8":                                        of("v1.2.3"),
		"v1.2.3, commit 0c165ad, go1.26.8":                        of("v1.2.3", commit, clean),
		"v1.2.4-0.2026+dirty, commit 0c165ad, modified, go1.26.8": of("v1.2.4-0.2026+dirty", commit, dirty),
		"v1.2.3, go1.26.8, linux/arm64":                           of("v1.2.3", debug.BuildSetting{Key: "GOOS", Value: "linux"}, debug.BuildSetting{Key: "GOARCH", Value: "arm64"}),
		"(devel), go1.26.8":                                       of(""),
	} {
		if got := version(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Version(); !strings.Contains(got, "go1.") || !strings.HasSuffix(got, ", "+runtime.GOOS+"/"+runtime.GOARCH) {
		t.Errorf("this test was built from %q", got)
	}
}
