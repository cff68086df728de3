package executor

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestAnExecutorAnswersOneRequestWithOneResultAndItsExitCode(t *testing.T) {
	var asked []Request
	aws := func(ctx context.Context, q Request) Result {
		asked = append(asked, q)
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("nothing ends its time")
		}
		return Result{Outcome: OutcomeThrottled, Code: "RequestLimitExceeded", Message: "wait\na little", Calls: 1}
	}
	var out bytes.Buffer
	exit := Serve(context.Background(), strings.NewReader(text(t, whole)), &out, map[string]Execute{"aws": aws})
	r, err := DecodeResult(out.Bytes(), exit)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Result{Version: 1, Outcome: OutcomeThrottled, Code: "RequestLimitExceeded", Message: "wait a little", Calls: 1}); !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
	if len(asked) != 1 || !reflect.DeepEqual(asked[0], whole) {
		t.Errorf("it was asked for %+v, want %+v once", asked, whole)
	}
}

func TestAnExecutorRefusesWhatIsNotItsOwn(t *testing.T) {
	never := func(context.Context, Request) Result {
		t.Error("it was asked")
		return Result{}
	}
	azure := whole
	azure.Profile.Provider = "azure"
	for _, in := range []string{"", "{}", text(t, azure)} {
		var out bytes.Buffer
		exit := Serve(context.Background(), strings.NewReader(in), &out, map[string]Execute{"aws": never})
		if r, err := DecodeResult(out.Bytes(), exit); err != nil || r.Outcome != OutcomeRefused || r.Message == "" {
			t.Errorf("%q is answered with %+v, %v, want it refused", in, r, err)
		}
	}
}

func TestAResultThatCannotBeWrittenIsNoSuccess(t *testing.T) {
	done := func(context.Context, Request) Result { return Result{Outcome: OutcomeDone} }
	exit := Serve(context.Background(), strings.NewReader(text(t, whole)), deaf{}, map[string]Execute{"aws": done})
	if exit != OutcomeUnknown.ExitCode() {
		t.Errorf("exit code %d, want %d", exit, OutcomeUnknown.ExitCode())
	}
}

type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("nobody listens") }
