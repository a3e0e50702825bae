# Every command of Weir. `make` alone lists them. It needs Go, git, a shell, coreutils, grep and gzip, and nothing else (see .ci/fresh).

GO      ?= go
# Binaries don't contain their folder's path, so another clone of the same commit has nothing to compile. They have no tables of symbols
# or for debuggers: tests and images omit them anyway, and linking with them takes half as long again. GOFLAGS=-trimpath keeps them.
COMPILED = -trimpath -gcflags=all=-dwarf=false -ldflags=-s
export GOFLAGS := $(filter-out $(COMPILED),$(shell $(GO) env GOFLAGS)) $(COMPILED)
LINTER   = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
MODULES  = $(shell $(GO) list -m -f '{{.Dir}}')
PACKAGES = $(MODULES:%=%/...)
PROGRAMS = $(wildcard */cmd/*)

# The race detector needs a C compiler; without one Go turns cgo off. Programs that tests build are compiled without cgo, as elsewhere.
# At the end of a package it waits a tenth of a second for reports, instead of one, which sixty packages would wait for.
RACE     = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race -exec "env CGO_ENABLED=0 GORACE=atexit_sleep_ms=100")
TESTS    = $(PACKAGES) # e.g. make test TESTS=./ledger/...
# Without this, a package that is missing, or does not parse, would be omitted silently.
LISTED   = $(call whole,$(shell $(GO) list $(TESTS) || echo incomplete))
whole    = $(if $(filter incomplete,$(1)),$(error cannot list all packages of: $(TESTS)),$(1))
# Where the kind of servers can change a result: the other packages reach them through these.
SERVED   = ./shared/testenv/... ./shared/bus/... ./shared/inbox ./shared/outbox ./shared/eventstore/... ./ingest/internal/bus ./ingest/app ./ledger/app \
	./deploy/e2e
# Packages mostly wait, for a broker, a database or a time, so twice as many as there are cores run at once. Vet is part of lint. A cached
# result would hide what changed in the files of other modules, which some tests read.
TESTFLAGS = -count=1 -timeout=30m -vet=off -p=$(shell echo $$((2 * $$(nproc 2>/dev/null || echo 2))))
# Compilers, linkers and tests live for seconds: collecting garbage a third as often saves a fifth of the CPU.
test test-race test-kafka test-browser: export GOGC = 300
# Compiled without cgo as in a fresh clone, whatever the tests are compiled with.
BACKENDS = CGO_ENABLED=0 $(GO) build -o bin/backends ./shared/testenv/cmd/backends && bin/backends

.DEFAULT_GOAL := help
.PHONY: help docs golden run demo bench soak bench-fair bench-ledger bench-bus bench-store bench-front bench-clients bench-grouping bench-revocation build lint verify size test test-kafka test-browser test-kubernetes test-faults test-disk test-secured test-upgrade test-availability test-alerts test-images images load-images try-images up down test-compose clean

help: ## list the commands
	@while IFS= read -r line; do case $$line in [a-z]*:*"## "*) \
		printf '  make %-17s %s\n' "$${line%%:*}" "$${line#*## }";; esac; done <$(firstword $(MAKEFILE_LIST))

run: bin/weir ## start everything in one process, with a demo organization; data under .weir/
	@exec bin/weir run $(ARGS)

demo: bin/weir ## send a minute of realistic traffic to what `make run` started
	@exec bin/weir demo $(ARGS)

bench: bin/weir bin/bench ## measure throughput, latency and memory, with the embedded broker and with Apache Kafka
	@exec bin/bench throughput $(ARGS)

bench-front: bin/bench bin/collector ## measure what requests cost at the front door, beside a naive server, and OTLP beside the OpenTelemetry Collector
	@exec bin/bench front --collector=bin/collector $(ARGS)

bench-clients: bench-front ## measure what a log call costs in each client, beside what its language has, how much a process delivers, and bench-front
	cd ingest/client/go && GOWORK=off $(GO) test -run=- -bench=Call .
	cd ingest/client/javascript && npm install --silent --no-save --no-package-lock pino && node bench.js
	cd ingest/client/python && python3 bench.py
	$(GO) test -run=- -bench=Delivery -benchtime=1x ./ingest/client/conformance -entries=100000

bench-fair: bin/weir bin/bench ## measure how each kind of noisy organization affects quiet ones, and the memory
	@exec bin/bench fair $(ARGS)

bench-ledger: bin/bench ## measure the ledger alone, beside PostgreSQL's own maximum
	@exec bin/bench ledger $(ARGS)

soak: bin/bench ## run a year of realistic days in minutes, and measure by month what has grown
	@exec bin/bench soak $(ARGS)

bench-revocation: ## revoke 1,000 API keys under load, with processes killed and the broker away; how long each took to be in force
	$(BACKENDS) -disk -- $(GO) test ./deploy/e2e -run '^TestRevoked$$' -count=1 -v -timeout=30m -revocations=1000 $(ARGS)

bench-bus: ## measure the bus beside other Kafka clients, with the embedded broker and with Apache Kafka
	$(BACKENDS) -backend=$(or $(BACKEND),kafka) -measure -- sh -c 'cd shared/bus/benchmark && GOWORK=off $(GO) run . $(ARGS)'

bench-grouping: ## measure how well errors are grouped, beside the rules of other products; DATA= names labelled errors
	@$(GO) run ./grouping/benchmark -data='$(DATA)' $(ARGS)

# VictoriaLogs is compiled from its module. Without it the store is measured alone, and the table says so.
VICTORIA_LOGS = github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@v1.52.2
bin/victoria-logs:
	-CGO_ENABLED=0 GOBIN=$(CURDIR)/bin $(GO) install $(VICTORIA_LOGS)

bench-store: bin/bench bin/victoria-logs ## store a day of 10 million entries in the log store and in VictoriaLogs, and search and count them in both
	@exec bin/bench store --victoria=bin/victoria-logs $(ARGS)

bin/collector: $(wildcard deploy/docker/collector/*)
	cd deploy/docker/collector && GOWORK=off CGO_ENABLED=0 $(GO) build -o $(CURDIR)/$@ .

.PHONY: bin/weir bin/bench
bin/weir:
	@$(GO) build -o $@ ./deploy/cmd/weir

bin/bench:
	@$(GO) build -o $@ ./deploy/bench

build: ## build every program into bin/
	@mkdir -p bin
	$(GO) build -o bin/ $(PROGRAMS:%=./%)

docs: ## write the generated pages of deploy/docs: every setting, every error code, every operation of the API
	$(GO) run ./deploy/cmd/weir docs .

golden: docs ## write what tests compare with: those pages, events as they are stored, metrics, permissions, the objects of the schemas
	$(GO) test -vet=off -count=1 ./shared/contract -args -add
	$(GO) test -vet=off -count=1 ./tenants -args -add -update
	$(BACKENDS) -- $(GO) test -vet=off -count=1 -run='^Test(ObjectsAreThoseOfMigrations|Modules)$$' ./deploy/doctor ./deploy/e2e -args -update

# The images' labels come from the commit, so the same commit has the same digests.
images try-images up down test-compose: export VERSION ?= $(shell git describe --tags --always --dirty)
images try-images up test-compose: export REVISION ?= $(shell git rev-parse HEAD)
images try-images up test-compose: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
images try-images up down test-compose: export IMAGES ?= weir
images: ## build a container image of every program, as files under bin/images; VERSION=, IMAGES=, ARCH=
	$(GO) run ./deploy/images/cmd/images

# Targets that need the images loaded share one build of them, in one call of make.
load-images: images
	@for program in $(notdir $(PROGRAMS)); do docker load --quiet --input bin/images/$$program.tar || exit; done

try-images: load-images ## load the images into the container engine, and start each as a user without rights
	@for program in $(notdir $(PROGRAMS)); do \
		docker run --rm --network=none --read-only --cap-drop=ALL --security-opt=no-new-privileges $(or $(IMAGES),weir)/$$program:$$VERSION version || exit; \
	done

# Compose is a plugin of the engine; if it is missing, it is compiled from its module, which must be the main one for its excludes to apply.
COMPOSE_MODULE  = github.com/docker/compose/v2@v2.40.3
COMPOSE        ?= $(if $(shell docker compose version 2>/dev/null),docker compose,bin/docker-compose)
COMPOSE_FILES  ?= -f deploy/compose/compose.yaml
up down: export WEIR_SECRETS ?= $(CURDIR)/deploy/compose/secrets
up down test-compose: export WEIR_VERSION = $(VERSION)

bin/docker-compose:
	CGO_ENABLED=0 $(GO) build -C "$$(cd / && $(GO) mod download -json $(COMPOSE_MODULE) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" -o "$(CURDIR)/$@" ./cmd

LOADED ?= load-images
up: $(LOADED) bin/weir $(filter bin/docker-compose,$(COMPOSE)) ## Weir, Apache Kafka, PostgreSQL, Prometheus, Grafana and a collector of traces in containers; SERVICES= chooses
	bin/weir provision "$$WEIR_SECRETS" && $(COMPOSE) $(COMPOSE_FILES) up --detach --wait $(SERVICES)

down: $(filter bin/docker-compose,$(COMPOSE)) ## stop what make up has started; its data stays. ARGS=--volumes removes that too
	$(COMPOSE) $(COMPOSE_FILES) down $(ARGS)

# The test runs make up itself, as the page says: a project with secrets of its own. An earlier one keeps its volumes; only its port
# conflicts. After a failure, Kafka prints what its threads wait for: it has been found not to listen after two minutes.
test-compose: export COMPOSE_PROJECT_NAME = weir-test
test-compose: export WEIR_SECRETS = $(CURDIR)/bin/test-compose/secrets
test-compose: export COMPOSE_FILES = -f deploy/compose/compose.yaml -f deploy/compose/scenario.yaml
test-compose: export WEIR_COMPOSE = $(COMPOSE) $(COMPOSE_FILES)
test-compose: export LOADED =
COMPOSED ?= ^TestComposed$$
test-compose: load-images $(filter bin/docker-compose,$(COMPOSE)) ## make up, the end-to-end scenario, every runbook, make down; COMPOSED=TestComposed also stops a service until it is an alert
	WEIR_BASE_URL=https://localhost:8443/v1 $(GO) test $(TESTFLAGS) -tags=composed -run='$(COMPOSED)' -v ./deploy/e2e; code=$$?; \
		[ $$code = 0 ] || { $(COMPOSE) $(COMPOSE_FILES) kill --signal=QUIT kafka; sleep 1; $(COMPOSE) $(COMPOSE_FILES) logs --tail=60; }; \
		$(MAKE) --no-print-directory down ARGS=--volumes && exit $$code

# As for tests, below; with a limit of the memory, which would otherwise be 3 GB and more.
lint: export GOGC = 300
lint: export GOMEMLIMIT = 3GiB
lint: ## check style and the architecture's rules
	$(GO) run $(LINTER) run --allow-parallel-runners $(PACKAGES)

# Without service discovery, which is most of it and which no test of rules needs.
PROMTOOL = $(GO) run -tags=remove_all_sd github.com/prometheus/prometheus/cmd/promtool@v0.316.0
verify: ## each module builds alone, is tidy and formatted; the alerts fire where they should, queries of dashboards and runbooks are ones, Grafana takes the dashboards, generators of clients the OpenAPI document
	@sh .ci/verify $(MODULES)
	@cd shared/bus/benchmark && GOWORK=off $(GO) list -deps . >/dev/null # it is in no workspace: its go.mod falls behind that of shared
	$(GO) run ./deploy/prometheus/cmd/queries deploy/compose/grafana/dashboards/*.json deploy/docs/runbooks/Weir*.md | $(PROMTOOL) check rules
	$(PROMTOOL) test rules deploy/prometheus/*_test.yaml
	WEIR_PROMTOOL="$(PROMTOOL)" $(GO) test -vet=off -tags=promtool -run='^TestJudge$$' ./deploy/prometheus/recording
	$(GO) test -vet=off -tags=grafana -run='^TestGrafana' ./deploy/prometheus
	$(GO) test -vet=off -tags=generators -run='^TestGenerators$$' ./deploy/gateway/reference

size: ## count lines and words by module; list large types and structs, and small packages
	@$(GO) run ./deploy/size

UNRACED = CGO_ENABLED=0 $(GO) test $(TESTFLAGS)

# The race detector finds nothing in packages that start nothing concurrent, tests included, nor in clients that are processes of their own,
# nor in benchmarks and the tests of all modules together that it does not find elsewhere, and only slows them down.
CONCURRENT = ^\s*go |\bchan |\bselect [{]|"sync|golang.org/x/sync|\.(AfterFunc|Go|New(TLS|Unstarted)?Server|Parallel)[(]
SEQUENTIAL = $(shell $(GO) list -f '{{.Dir}} {{.ImportPath}}' $(TESTS) | while read -r dir path; do grep -qE '$(CONCURRENT)' "$$dir"/*.go || echo "$$path"; done)
RACELESS   = $(SEQUENTIAL) $(filter %/benchmark %/ingest/client/conformance $(addprefix github.com/weirlog/weir/deploy/,$(TOGETHER)),$(LISTED))
TOGETHER   = architecture bench bench/% cmd/% disk doctor e2e isolation resume

test: ## unit and integration tests: a local PostgreSQL, the embedded broker
	$(BACKENDS) -slowest=10 -- env $(UNRACED) $(LISTED)

test-race: ## those of the tests in which the race detector can find something and which test-kafka has not; it needs a C compiler
	$(if $(RACE),,$(error the race detector is off: it needs a C compiler))
	$(BACKENDS) -slowest=10 -- $(GO) test $(RACE) $(TESTFLAGS) $(filter-out $(RACELESS) $(call whole,$(shell $(GO) list $(SERVED) || echo incomplete)),$(LISTED))

# Tests take turns on a given node, so the bus and the end-to-end tests have one each, and the bus three more.
BUS      = github.com/weirlog/weir/shared/bus
ON_BUS   = $(filter $(BUS) $(BUS)/%,$(LISTED))
REST     = $(filter-out $(ON_BUS),$(LISTED))
RACED    = $(GO) test $(RACE) $(TESTFLAGS)
ONE_MORE = env -u WEIR_TEST_BROKERS bin/backends -backend=kafka --
# started NAME COMMAND PACKAGE…: runs a command for packages, if there are any, beside the next one
started  = $(if $(strip $(3)),$(2) $(strip $(3)),:) & $(1)=$$!;
test-kafka: TESTS = $(SERVED)
test-kafka: ## the tests of what stands on servers directly, and the end-to-end tests, on Apache Kafka and PostgreSQL: in containers if there is an engine, else on this machine; with the race detector where there is a C compiler
	$(BACKENDS) -backend=kafka -slowest=10 -- sh -c '\
		$(call started,bus,$(ONE_MORE) $(RACED) -tags=apache,$(ON_BUS)) \
		$(call started,raceless,$(ONE_MORE) env $(UNRACED),$(filter $(RACELESS),$(REST))) \
		$(call started,raced,$(RACED),$(filter-out $(RACELESS),$(REST))) \
		wait $$bus; a=$$?; wait $$raceless; b=$$?; wait $$raced && exit $$((a + b))'

ROUNDS ?= full
SEED   := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
FAULTS  = bin/bus-faults
KILLED  = $(GO) test -run='^Test(Killed|Besieged)$$' -v $(TESTFLAGS) ./deploy/e2e
# Three nodes are always Apache Kafka: one run with them is enough.
test-faults: ## a million random steps of the books, a hundred rebuilds of them, 100,000 histories of groups, every fault at full count, on both brokers and on three nodes; SEED= repeats a run, ROUNDS= shortens it
	@mkdir -p bin
	$(GO) test -c -tags=apache -o $(FAULTS) ./shared/bus
	@echo "SEED=$(SEED) ROUNDS=$(ROUNDS)"
	@WEIR_FAULT_SEED=$(SEED) WEIR_FAULT_ROUNDS=$(ROUNDS) $(GO) test -run='^TestBooksAreTheModel$$' -count=1 -timeout=1h ./ledger
	@WEIR_FAULT_SEED=$(SEED) WEIR_FAULT_ROUNDS=$(ROUNDS) $(GO) test -run='^TestARebuildIsTheBooks$$' -count=1 -timeout=1h ./ledger/internal/rebuild
	@WEIR_FAULT_SEED=$(SEED) WEIR_FAULT_ROUNDS=$(ROUNDS) $(BACKENDS) -- $(GO) test -run='^TestHistoriesLikeModel$$' -count=1 -timeout=8h ./grouping/internal/postgres
	@WEIR_FAULT_ROUNDS=$(ROUNDS) $(BACKENDS) -- $(GO) test -run='^TestKilledReplica$$' -count=1 -timeout=1h ./grouping/app
	@export WEIR_FAULT_SEED=$(SEED) WEIR_FAULT_ROUNDS=$(ROUNDS); \
		$(BACKENDS) -- sh -c "$(FAULTS) -test.timeout=4h -test.run='^TestFault' -test.skip='/(leader_killed|majority_down)$$'; bus=\$$?; \
			$(KILLED) && exit \$$bus"; embedded=$$?; \
		$(BACKENDS) -backend=kafka -- sh -c "$(FAULTS) -test.timeout=4h -test.run='^TestFault'; bus=\$$?; \
			$(KILLED) && exit \$$bus" && exit $$embedded
	@$(MAKE) --no-print-directory test-upgrade test-availability test-alerts test-secured

REPLICATED = env WEIR_PROMTOOL="$(PROMTOOL)" $(GO) test -v $(TESTFLAGS) -tags=replicas ./deploy/e2e
# The commit in a file, until there is a tag.
UPGRADE_FROM ?= $(or $(shell git describe --tags --abbrev=0 HEAD^ 2>/dev/null),$(shell cat deploy/e2e/testdata/upgrade-from))
test-upgrade: ## an earlier version beside this one under load, from it and back to it; UPGRADE_FROM= names another than the last
	$(BACKENDS) -- env WEIR_UPGRADE_FROM=$(UPGRADE_FROM) $(REPLICATED) -run='^TestUpgraded$$'

test-availability: ## two replicas of each service under load: restarted, without a broker, PostgreSQL failed over, a certificate expired, scaled
	$(BACKENDS) -- $(REPLICATED) -run='^Test(Available|Scaled)$$' $(ARGS)

test-alerts: ## two replicas of each service under load, one fault after the other: each raises the alerts that the runbooks name, and no others
	$(BACKENDS) -- $(REPLICATED) -run='^TestAlerted$$' $(ARGS)

# First all of `weir run` and the embedded broker's log, which are all with ROUNDS=short; then what needs no embedded broker on Apache Kafka,
# and the rows whose tests stand beside their code.
ON_DISK = $(GO) test $(TESTFLAGS) -tags=disk
BESIDE  = EveryColumn|^Test(ARebuildIsTheBooks|Rebuilt.*|Restart|ALostRevocationHolds|ALossIsRepairedAtOnce|RefusalsAreSealed|RootsHaveRefusals|OvershootEatsNoGrant|ReplicasAtTheEdge|SmallRequestsOnDisk|TheEndOfTheLogIsLost|WebhookGetsFactsOfAnyTime|FloodsAreClosed|ReconnectsAfterErrorsAreLimited)$$
test-disk: ## faults below Weir, each against what was acknowledged: a full disk, torn writes, lost tails, a killed database, changed books; ROUNDS=short for less. Root, on Linux
	$(BACKENDS) -slowest=10 -- env $(if $(filter short,$(ROUNDS)),,WEIR_FAULT_ROUNDS=$(ROUNDS)) $(ON_DISK) -parallel=3 ./deploy/disk ./shared/embedded/kafka/...
ifneq ($(ROUNDS),short)
	$(BACKENDS) -backend=kafka -- $(ON_DISK) -run='^Test(DatabaseIsKilled|StartWithABacklog|Drill)$$' ./deploy/disk ./deploy/resume
	$(BACKENDS) -- $(ON_DISK) -run='$(BESIDE)' ./ledger/... ./tenants/app ./ingest/app ./shared/httpapi/... ./deploy/e2e ./deploy/resume
endif

test-secured: ## the end-to-end scenario with every service as a user of its own at an Apache Kafka with rights, and as a role that owns nothing
	$(BACKENDS) -- env WEIR_PROMTOOL="$(PROMTOOL)" $(GO) test -run='^TestSecuredProcesses$$' -v $(TESTFLAGS) -tags=apache ./deploy/e2e

test-browser: ## the console in Chromium: by keyboard alone, every page checked for accessibility, input never runs as a script
	$(BACKENDS) -- $(GO) test $(TESTFLAGS) -tags=browser ./deploy/browser

# The API server needs a module of its own: Kubernetes replaces its dependencies. Helm and crane are only for these tests.
KUBERNETES = etcd kube-apiserver kubectl helm crane
test-kubernetes: $(KUBERNETES:%=bin/kubernetes/%) bin/weir ## the Helm chart: rendered, decoded strictly, held against policies, installed at a real API server by the page's commands
	cd deploy/kubernetes && GOWORK=off $(UNRACED) ./...

bin/kubernetes/etcd: MAIN = go.etcd.io/etcd/server/v3
bin/kubernetes/kube-apiserver: MAIN = k8s.io/kubernetes/cmd/kube-apiserver
bin/kubernetes/kube-apiserver: VARIABLES = -X k8s.io/component-base/version.gitVersion=$(shell sed -n 's|.*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' deploy/kubernetes/apiserver/go.mod)
bin/kubernetes/kubectl: MAIN = k8s.io/kubernetes/cmd/kubectl
bin/kubernetes/helm: MAIN = helm.sh/helm/v4/cmd/helm
bin/kubernetes/crane: MAIN = github.com/google/go-containerregistry/cmd/crane
bin/kubernetes/helm bin/kubernetes/crane: deploy/kubernetes/go.mod
bin/kubernetes/etcd bin/kubernetes/kube-apiserver bin/kubernetes/kubectl: deploy/kubernetes/apiserver/go.mod
bin/kubernetes/%:
	CGO_ENABLED=0 GOWORK=off $(GO) build -C $(^D) -ldflags='-s -w $(VARIABLES)' -o $(CURDIR)/$@ $(MAIN)

test-images: ## build the images of test-kafka and test-compose where none can be pulled (Debian, root)
	deploy/docker/build-test-images

clean: ## remove what was built; data under .weir/ stays
	rm -rf bin
