package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// The commands that ask a cluster, and those that write down a person's wish, as scripts. Beside
// the usual commands of testscript there are
//
//	cluster FILE...                 serves the objects of these files; AGO(48h) in them is an instant,
//	                                and DAY(3) the weekday in three days
//	exits CODE ARGUMENTS            runs tasuki on that cluster, and expects an exit code
//	deny VERB RESOURCE              takes a right away
//	races RESOURCE KEY=VALUE        somebody annotates the object right before it is patched
//	annotated RESOURCE NAME REGEXP  expects that its annotations match; with !, that they do not
func TestInquiries(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/inquiry",
		Setup: func(e *testscript.Env) error {
			e.Values[siteKey{}] = &site{}
			return os.CopyFS(e.WorkDir, os.DirFS("testdata/inquiry"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster":   siteCluster,
			"exits":     siteExits,
			"deny":      siteDeny,
			"races":     siteRaces,
			"annotated": siteAnnotated,
		},
	})
}

type siteKey struct{}

// site is the cluster of a script.
type site struct {
	server     *apiServer
	kubeconfig string
}

func siteOf(ts *testscript.TestScript) *site { return ts.Value(siteKey{}).(*site) }

// instant is one relative to now in a file, or a weekday.
var instant = regexp.MustCompile(`AGO\(([0-9hm]+)\)|DAY\(([0-9])\)`)

func instants(text string) string {
	now := time.Now().UTC()
	return instant.ReplaceAllStringFunc(text, func(s string) string {
		m := instant.FindStringSubmatch(s)
		if days, err := strconv.Atoi(m[2]); err == nil {
			return now.AddDate(0, 0, days).Format("Mon")
		}
		ago, err := time.ParseDuration(m[1])
		if err != nil {
			panic(err) // a mistake in the script
		}
		return now.Add(-ago).Format(time.RFC3339)
	})
}

func siteCluster(ts *testscript.TestScript, _ bool, files []string) {
	var texts []string
	for _, f := range files {
		texts = append(texts, instants(ts.ReadFile(f)))
	}
	server, kubeconfig, err := newAPIServer(ts.MkAbs("."), strings.Join(texts, "\n---\n"))
	ts.Check(err)
	ts.Defer(func() { server.CloseClientConnections(); server.Close() })
	s := siteOf(ts)
	s.server, s.kubeconfig = server, kubeconfig
}

func siteExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]
	if s := siteOf(ts); s.server != nil {
		args = append(args, "--kubeconfig", s.kubeconfig)
	}
	var out, errs bytes.Buffer
	got := run(context.Background(), args, &out, &errs)
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), errs.String())
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	ts.Check(obeys(args, out.String()))
}

func siteDeny(ts *testscript.TestScript, _ bool, args []string) {
	siteOf(ts).server.allow(strings.Join(args, " "), false)
}

func siteRaces(ts *testscript.TestScript, _ bool, args []string) {
	siteOf(ts).server.moves[args[0]] = args[1]
}

func siteAnnotated(ts *testscript.TestScript, not bool, args []string) {
	all, err := siteOf(ts).server.annotations(args[0], args[1])
	ts.Check(err)
	if regexp.MustCompile(args[2]).MatchString(all) == not {
		ts.Fatalf("its annotations are\n%s", all)
	}
}

// loud is an output that is read while it is written.
type loud struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *loud) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *loud) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// A change of the cluster is told as a line once it has happened, and an interrupted watch has
// done what it was asked for.
func TestStatusWatchTellsChanges(t *testing.T) {
	var objects []string
	for _, file := range []string{"policy", "pool", "claims"} {
		text, err := os.ReadFile("testdata/inquiry/" + file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, instants(string(text)))
	}
	server, kubeconfig, err := newAPIServer(t.TempDir(), strings.Join(objects, "\n---\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { server.CloseClientConnections(); server.Close() }()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	var out, errs loud
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"status", "--watch", "--kubeconfig", kubeconfig}, &out, &errs) }()
	await := func(line string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !regexp.MustCompile("(?m)" + line).MatchString(out.String()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("nothing like %q in\n%s%s", line, out.String(), errs.String())
			}
		}
	}
	await(`^\S+Z NodePool api eligible: nothing is in the way`)
	server.annotate(t, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "api"}}, "noderotation.io/freeze=2099-01-01T00:00:00Z")
	await(`^\S+Z NodePool api frozen: frozen until 2099-01-01T00:00:00Z$`)
	server.allow("list nodepools", false)
	await(`^\S+Z cluster cannot be read: the API server does not answer: `)
	server.allow("list nodepools", true)
	await(`^\S+Z cluster is read again$`)
	if err := server.store.Delete(context.Background(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "api"}}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	await(`^\S+Z NodePool api is gone$`)
	if n := strings.Count(out.String(), "\n"); n > 5 {
		t.Errorf("what does not change is told again:\n%s", out.String())
	}
	interrupt()
	if got := <-code; got != exitOK || errs.String() != "" {
		t.Errorf("interrupted, it exits with %d: %s", got, errs.String())
	}
}
