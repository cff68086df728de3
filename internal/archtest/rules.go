package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// violations says what is wrong with the packages of a module, one line each, with what to
// do about it.
func violations(module string, packages []*pkg) (out []string) {
	for _, p := range packages {
		report := func(format string, args ...any) {
			out = append(out, p.dir+": "+fmt.Sprintf(format, args...))
		}
		k, listed := layout[p.dir]
		if !listed {
			report("not listed: give it a kind in internal/archtest/layout.go")
			continue
		}
		if !p.documented {
			report("has no package comment: say what it promises")
		}
		if (p.name == "main") != (k == command) && p.name != "" {
			report("is package %s and of kind %s: commands, and only they, are package main", p.name, k)
		}
		if k == core {
			for _, use := range p.clock {
				report("%s: a core is told the time", use)
			}
		}
		for _, imported := range slices.Sorted(maps.Keys(p.imports)) {
			if why := refused(module, p.dir, k, imported); why != "" {
				report("%s imports %s: %s", p.imports[imported], imported, why)
			}
		}
	}
	return out
}

// refused says why a package of this kind may not import the path, or nothing.
func refused(module, dir string, k kind, imported string) string {
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
		return refusedInside(dir, k, inside)
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		if k == core && covers(impure, imported) && !covers(pure, imported) {
			return "a core has no context, client, logger, file or goroutine"
		}
		return ""
	}
	allowed, restricted := thirdParty[k]
	if restricted && !covers(allowed, imported) && !slices.Contains(extra[dir], imported) {
		return fmt.Sprintf("not open to a package of kind %s", k)
	}
	return ""
}

func refusedInside(dir string, k kind, inside string) string {
	if slices.Contains(extra[dir], inside) {
		return ""
	}
	to, listed := layout[inside]
	if !listed {
		return "which is not listed in internal/archtest/layout.go"
	}
	if slices.Contains(arrows[k], to) {
		return ""
	}
	if k == to && (k == adapter || k == lab) && family(dir) == family(inside) {
		return ""
	}
	return fmt.Sprintf("a package of kind %s may not import one of kind %s", k, to)
}

// family is the directory that an adapter and its variants share: internal/claims for
// internal/claims/sqlite.
func family(dir string) string {
	parts := strings.Split(dir, "/")
	if parts[0] == "internal" && len(parts) > 2 {
		parts = parts[:2]
	} else if parts[0] != "internal" {
		parts = parts[:1]
	}
	return strings.Join(parts, "/")
}

// covers says whether one of the paths is the imported one or above it.
func covers(paths []string, imported string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return imported == p || strings.HasPrefix(imported, p+"/")
	})
}
