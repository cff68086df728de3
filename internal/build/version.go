// Package build says what a command was built from, as the Go toolchain has recorded it.
package build

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Version is one line: the version of the module, the commit when the version does not name
// it, whether files were changed since, the version of Go, and the platform. What is not known is left out.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return version(info)
}

func version(info *debug.BuildInfo) string {
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	words := []string{cmp.Or(info.Main.Version, "(devel)")}
	if revision := recorded["vcs.revision"]; revision != "" {
		words = append(words, "commit "+revision)
	}
	if recorded["vcs.modified"] == "true" {
		words = append(words, "modified")
	}
	words = append(words, info.GoVersion)
	if os, arch := recorded["GOOS"], recorded["GOARCH"]; os != "" && arch != "" {
		words = append(words, os+"/"+arch)
	}
	return strings.Join(words, ", ")
}
