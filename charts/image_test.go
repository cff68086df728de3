package charts_test

import (
	"debug/elf"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

var builds = flag.Bool("image.build", false, "run the Dockerfile's build for each platform; takes minutes")

// The Dockerfile builds, without C, whatever the builder's platform is, programs for that of the
// image, and has the user and the program that the manifests name. There need be no container to
// tell: the very command of its build is run here.
func TestTheDockerfile(t *testing.T) {
	raw, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(raw), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	build := regexp.MustCompile(`(CGO_ENABLED=0 GOOS=\$TARGETOS GOARCH=\$TARGETARCH go build .*) -o /out/ (\./cmd/\.\.\.)`).FindStringSubmatch(text)
	if build == nil {
		t.Fatalf("there is no build of ./cmd/... without C for the platform of the image in\n%s", text)
	}
	for _, want := range []string{"FROM --platform=$BUILDPLATFORM golang:", "ARG TARGETOS TARGETARCH\n", "COPY --from=build /out/ /\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}

	entry := regexp.MustCompile(`ENTRYPOINT \["/([a-z-]+)"\]`).FindStringSubmatch(text)
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindStringSubmatch(text)
	if entry == nil || user == nil {
		t.Fatal("the Dockerfile has no ENTRYPOINT, or no USER by number")
	}
	if _, err := os.Stat(filepath.Join("../cmd", entry[1])); err != nil {
		t.Error(err)
	}
	for _, o := range objects(t) {
		if o.GetKind() != "Deployment" {
			continue
		}
		pod := as[appsv1.Deployment](t, o).Spec.Template.Spec
		if is := pod.SecurityContext; *is.RunAsUser != number(t, user[1]) || *is.RunAsGroup != number(t, user[2]) {
			t.Errorf("the image's user is %s:%s, and that of the Deployment is %d:%d", user[1], user[2], *is.RunAsUser, *is.RunAsGroup)
		}
		if got := pod.Containers[0].Command; !slices.Equal(got, []string{"/" + entry[1]}) {
			t.Errorf("the Deployment runs %v, and the image %s", got, entry[1])
		}
	}

	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		t.Run(arch, func(t *testing.T) {
			if !*builds {
				t.Skip("builds everything anew, which takes minutes: make image-check")
			}
			out := t.TempDir()
			cmd := exec.Command("sh", "-c", build[1]+" -o "+out+"/ "+build[2])
			cmd.Dir, cmd.Env = root, append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+arch)
			if said, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			for _, name := range []string{"tasuki", "tasuki-agent", "tasuki-controller", "tasuki-executor"} {
				f, err := elf.Open(filepath.Join(out, name))
				if err != nil {
					t.Error(err)
					continue
				}
				defer f.Close()
				linked := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
				if f.Machine != machine || linked {
					t.Errorf("%s is for %s, and linked with a library: %t", name, f.Machine, linked)
				}
			}
		})
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
