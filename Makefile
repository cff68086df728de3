# Everything runs with Go, git, make and a C compiler. The first lab build takes minutes.

GO    ?= go
TOOLS := $(GO) tool -modfile=tools/go.mod
HELM  := $(GO) tool -modfile=tools/helm/go.mod helm

.DEFAULT_GOAL := build
.PHONY: build install simulator demo demo-capture test test-page test-short mutate bench bench-scale bench-agent bench-seize chaos-capture lint generate verify alerts image-check clean

# Without gRPC's own traces, which nobody here can look at, the linker can leave out what is not
# called: that is a seventh of tasuki-agent's program in memory. Whatever $GOFLAGS says, --version has
# the commit, if git is there to tell it.
build: ## the commands, into bin/
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -tags grpcnotrace -o bin/ ./cmd/...

PREFIX ?= /usr/local

install: build ## tasuki, and as a plugin of kubectl with its completion, into $(PREFIX)/bin
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 bin/tasuki $(DESTDIR)$(PREFIX)/bin/tasuki
	ln -sf tasuki $(DESTDIR)$(PREFIX)/bin/kubectl-tasuki
	bin/tasuki completion kubectl > $(DESTDIR)$(PREFIX)/bin/kubectl_complete-tasuki
	chmod 755 $(DESTDIR)$(PREFIX)/bin/kubectl_complete-tasuki

simulator: ## tasuki with a simulator in the pages of plan -o html; its first build takes minutes
	$(GO) generate ./internal/simulator
	$(GO) build -buildvcs=auto -o bin/ ./cmd/tasuki

demo: build ## watch a real Karpenter node being replaced
	bin/tasuki demo $(DEMO_FLAGS)

demo-capture: build ## watch two agents hand addresses over, and a stale one be fenced
	bin/tasuki demo capture

# The end-to-end tests that run alone, one after the other. They mostly wait, and so have labs of
# their own beside the one of all others.
KILLS   := UnderRandomKills|OftenFails|ABudgetHolds|PreflightSays|ReadyOnce|R18KilledAt
LEADERS := R18KilledDuring|R19|R20|R27|LeaderIs
E2E     := $(GO) test -count=1 -timeout 40m ./test/e2e

# The lab mostly waits, and the simulations only reckon: they run beside each other.
SIMULATIONS := $(GO) test -count=1 -timeout 40m -v -run 'TestSimulation$$|TestThePlanIsWhatTheControllerDoes' ./internal/rotator ./internal/agent

test: ## everything: unit tests with the race detector, each benchmark once, the long simulations, then the lab
	$(GO) test -race -short -count=1 ./...
	$(GO) test -short -run '^$$' -bench . -benchtime 1x ./internal/...
	$(GO) test -count=1 -timeout 15m ./internal/claims/etcd
	$(GO) test -count=1 -timeout 15m ./internal/executor/linux ./test/lan
	$(MAKE) test-page
	$(GO) test -count=1 -timeout 30m ./charts
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 20m ./test/chaos -seize.nics 2 -idle.for 15s
	$(GO) test -count=1 -run 'TestDemoCaptureRepairs|TestAKilledCall|InEtcd|InKubectl' ./cmd/...
	$(GO) test -count=1 -p 1 -timeout 15m ./lab/...
	$(GO) test -short -run '^$$' -bench . -benchtime 1x -timeout 20m ./test/scale
	$(SIMULATIONS) & sims=$$!; $(E2E) -run '$(KILLS)' & kills=$$!; $(E2E) -run '$(LEADERS)' & leaders=$$!; \
	$(E2E) -skip '$(KILLS)|$(LEADERS)'; rest=$$?; \
	wait $$sims && wait $$kills && wait $$leaders && exit $$rest

test-page: ## the pages of tasuki plan in a real Chromium, with axe-core
	$(GO) test -count=1 -timeout 30m -v ./test/page

test-short: ## everything that needs no lab
	$(GO) test -short -count=1 ./...

mutate: ## takes every guard out once, expects its test to fail, writes docs/mutation.md
	$(GO) test ./internal/mutation -count=1 -timeout 60m -v -run '^TestEveryGuardIsMissed$$' -mutate -write docs/mutation.md $(MUTATE_FLAGS)

bench: ## benchmarks, for benchstat
	$(GO) test -short -run '^$$' -bench . -benchmem ./internal/...

bench-scale: ## what the controller takes in large clusters; docs/performance.md; half an hour
	$(GO) test ./test/scale -run '^$$' -bench . -benchtime 1x -timeout 90m $(SCALE_FLAGS)

bench-agent: ## what the agent takes with ten thousand addresses; docs/performance.md; ten minutes
	$(GO) test ./test/chaos -run '^$$' -bench Idle -benchtime 1x -timeout 30m

# What chaos-capture takes: how long, which faults, and more of chaos.md's flags.
CHAOS_FOR  ?= 10m
CHAOS_SEED ?= 0

chaos-capture: ## three agents and an etcd of three members, and what may befall them; docs/chaos.md
	$(GO) test ./test/chaos -count=1 -v -timeout 60m -run 'TestChaos$$' -chaos.for $(CHAOS_FOR) -chaos.seed $(CHAOS_SEED) $(CHAOS_FLAGS)

bench-seize: ## a host dies and leaves a thousand addresses; docs/chaos.md
	$(GO) test ./test/chaos -run '^$$' -bench Seize -benchtime 1x -timeout 30m

lint: ## gofmt, vet, staticcheck
	@out=$$(gofmt -l api charts cmd deploy internal lab test) && test -z "$$out" || { echo "$$out"; echo "run gofmt -w on these"; exit 1; }
	$(GO) vet ./...
	$(TOOLS) staticcheck ./...

# The tests that write docs/reference and docs/pictures, and otherwise hold them to the code.
REFERENCE := ./internal/reference ./internal/rotator ./internal/agent ./cmd/tasuki ./cmd/tasuki-controller ./cmd/tasuki-agent

generate: ## deepcopy functions, the CustomResourceDefinition, deploy/ from the chart, the reference in docs
	$(TOOLS) controller-gen object paths=./api/...
	$(TOOLS) controller-gen crd paths=./api/... output:crd:dir=charts/tasuki/crds
	$(HELM) template tasuki charts/tasuki -n node-rotation-system --include-crds --set namespace.create=true > deploy/tasuki.yaml
	$(GO) test -count=1 -short -run '^Test(Reference|Picture)' $(REFERENCE) -reference.write

verify: generate ## what is generated is committed, the modules are tidy, the documents are true, the chart is in order
	$(GO) mod tidy -diff
	$(GO) test -short ./internal/archtest
	$(HELM) lint --strict charts/tasuki
	@git diff --exit-code -- api charts deploy docs || { echo "generated files differ: commit what make generate wrote"; exit 1; }

alerts: ## the alerts and dashboards of the chart by Prometheus's own parser and promtool, whose first build takes minutes
	$(GO) build -modfile=tools/promtool/go.mod -tags remove_all_sd -o bin/ github.com/prometheus/prometheus/cmd/promtool
	bin/promtool check rules charts/tasuki/files/alerts.yaml charts/tasuki/files/capture-alerts.yaml
	bin/promtool test rules docs/alerts_test.yaml docs/capture-alerts_test.yaml
	cd tools/promtool && $(GO) run ./dashboards $(CURDIR)/charts/tasuki/files/rotation.json $(CURDIR)/charts/tasuki/files/capture.json

image-check: ## the build of the Dockerfile for each platform, without a container; takes minutes
	$(GO) test -count=1 -timeout 60m -v ./charts -run '^TestTheDockerfile$$' -image.build

clean:
	rm -rf bin internal/simulator/assets/*.gz
