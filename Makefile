# Everything runs with Go, git, make and a C compiler. The first lab build takes minutes.

GO    ?= go
TOOLS := $(GO) tool -modfile=tools/go.mod

.DEFAULT_GOAL := build
.PHONY: build demo test test-short bench lint generate verify clean

build: ## the commands, into bin/
	$(GO) build -o bin/ ./cmd/...

demo: build ## watch a real Karpenter node being replaced
	bin/tasuki demo $(DEMO_FLAGS)

test: ## everything: unit tests with the race detector, then the lab
	$(GO) test -race -short -count=1 ./...
	$(GO) test -count=1 -p 1 -timeout 35m ./lab/... ./test/...

test-short: ## everything that needs no lab
	$(GO) test -short -count=1 ./...

bench: ## benchmarks, for benchstat
	$(GO) test -short -run '^$$' -bench . -benchmem ./internal/...

lint: ## gofmt, vet, staticcheck
	@out=$$(gofmt -l api charts cmd internal lab test) && test -z "$$out" || { echo "$$out"; echo "run gofmt -w on these"; exit 1; }
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...

generate: ## deepcopy functions and the CustomResourceDefinition
	$(TOOLS) controller-gen object paths=./api/...
	$(TOOLS) controller-gen crd paths=./api/... output:crd:dir=charts/tasuki/crds

verify: generate ## what is generated is committed, and the modules are tidy
	$(GO) mod tidy -diff
	@git diff --exit-code -- api charts || { echo "generated files differ: commit what make generate wrote"; exit 1; }

clean:
	rm -rf bin
