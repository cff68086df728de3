//go:build js && wasm

// Command tasuki-wasm is the simulator of a page, for its browser: it answers page.Request with
// page.Answer, both in JSON, as the function tasukiSimulate.
package main

import (
	"encoding/json"
	"fmt"
	"syscall/js"
	_ "time/tzdata" // a browser has no files

	"github.com/tasuki-io/tasuki/internal/page"
)

func main() {
	js.Global().Set("tasukiSimulate", js.FuncOf(func(_ js.Value, args []js.Value) any { return answer(args[0].String()) }))
	select {}
}

func answer(request string) (out string) {
	defer func() {
		if r := recover(); r != nil {
			out = encode(page.Answer{Error: fmt.Sprintf("the simulator failed: %v: please report it with the input", r)})
		}
	}()
	var r page.Request
	if err := json.Unmarshal([]byte(request), &r); err != nil {
		return encode(page.Answer{Error: fmt.Sprintf("read the request of the page: %v", err)})
	}
	return encode(page.Simulate(r))
}

func encode(a page.Answer) string {
	out, err := json.Marshal(a)
	if err != nil {
		panic(err) // strings only
	}
	return string(out)
}
