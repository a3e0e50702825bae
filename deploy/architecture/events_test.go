package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

const contractPath = prefix + "shared/contract"

// contractWords are what a module may use of the contract outside of
// internal/bus and its wiring: no event, no attribute, no encoding or decoding.
var contractWords = map[string]string{
	"Positions":            "offsets by partition, as answers and account states have them",
	"GroupLedger":          "names the rows of the ledger's positions",
	"TopicLogs":            "names the rows of positions in the log",
	"OutcomeAccepted":      "a word that is counted, kept and shown",
	"OutcomeRejected":      "a word that is counted, kept and shown",
	"OutcomeDropped":       "a word that is counted, kept and shown",
	"OutcomeDroppedByRule": "a word that is counted, kept and shown",
	"OutcomeRateLimited":   "a word that is counted, kept and shown",
	"OutcomeQuotaExceeded": "a word that is counted, kept and shown",
	"OutcomeOverloaded":    "a word that is counted, kept and shown",
	"ReasonSuspended":      "a word that is counted, kept and shown",
	"ReasonProjectBudget":  "a word that is counted, kept and shown",
	"ReasonKeyBudget":      "a word that is counted, kept and shown",
	"CredentialActive":     "the state that a change of a credential waits for",
	"CredentialRevoked":    "the state that a change of a credential waits for",
	"CredentialKey":        "the digest by which a report of a leak is answered",
	"Notifications":        "the facts that webhooks may ask for",
	"NameErrorAlertFired":  "a word by which webhooks ask for alerts",
	"ErasingModules":       "who has to report a deletion",
}

// mapsContract reports whether a package may use the whole contract:
// the adapter, its wiring, and a benchmark, which hands records to it.
func mapsContract(importPath string) bool {
	rest := strings.TrimPrefix(importPath, prefix+module(importPath)+"/")
	return rest == "internal/bus" || rest == "app" || rest == "benchmark" || strings.HasPrefix(rest, "app/")
}

func contractUses(files []*ast.File) (names []string) {
	for _, file := range files {
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+contractPath+`"` }) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && nameOf(selector.X) == "contract" {
				names = append(names, selector.Sel.Name)
			}
			return true
		})
	}
	return names
}

// mappedElsewhere finds uses of the contract that belong in
// internal/bus, and notes the words used.
func mappedElsewhere(p goPackage, files []*ast.File, used map[string]bool) (found []string) {
	if !slices.Contains(middle, module(p.ImportPath)) || mapsContract(p.ImportPath) || isForTests(p.ImportPath) {
		return nil
	}
	for _, name := range contractUses(files) {
		if contractWords[name] == "" {
			found = append(found, fmt.Sprintf("%s uses contract.%s: map it in internal/bus", p.ImportPath, name))
		}
		used[name] = true
	}
	return found
}

func syntax(t *testing.T, p goPackage) (files []*ast.File) {
	t.Helper()
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		testenv.Must(t, err)
		files = append(files, file)
	}
	return files
}

func syntaxOf(t *testing.T, text string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	testenv.Must(t, err)
	return file
}

// Events are mapped onto the domain, and back, in internal/bus of each module.
func TestContractIsMappedInTheBus(t *testing.T) {
	used := map[string]bool{}
	for _, p := range all(t) {
		if !slices.Contains(p.Imports, contractPath) {
			continue
		}
		for _, violation := range mappedElsewhere(p, syntax(t, p), used) {
			t.Error(violation)
		}
	}
	for word := range contractWords {
		if !used[word] {
			t.Errorf("contract.%s is used outside of internal/bus no more", word)
		}
	}
}

// An event in a store is found; it is allowed in internal/bus, in the
// wiring and in tests, and words are allowed everywhere.
func TestMappingElsewhereIsFound(t *testing.T) {
	const event = "package p\nimport \"" + contractPath + "\"\nvar e contract.LogsAccepted"
	const word = "package p\nimport \"" + contractPath + "\"\nvar p contract.Positions"
	for _, c := range []struct {
		at, text string
		want     int
	}{
		{"ledger/internal/postgres", event, 1}, {"ledger/internal/postgres", word, 0}, {"ledger/internal/bus", event, 0}, {"ledger/app", event, 0},
		{"ledger/internal/ledgertest", event, 0}, {"shared/identity", event, 0}, {"deploy/e2e", event, 0}, {"tenants/internal/keys", event, 1},
	} {
		if found := mappedElsewhere(goPackage{ImportPath: prefix + c.at}, []*ast.File{syntaxOf(t, c.text)}, map[string]bool{}); len(found) != c.want {
			t.Errorf("%s: %q", c.at, found)
		}
	}
}

// gatherers are the packages that publish on gathered topics, one on each.
var gatherers = map[string]string{contract.TopicIngest: prefix + "shared/keyfact", contract.TopicErasures: prefix + "shared/erasure"}

// outgoing are the types of messages that name their topic.
var outgoing = regexp.MustCompile(`(?i)(outbox|outgoing)`)

// One service writes a topic, its owner; a gathered topic is written
// through one package for all.
func TestTopicsHaveOneWriter(t *testing.T) {
	writers := map[string][]string{} // by the topic's constant
	for _, p := range all(t) {
		if isForTests(p.ImportPath) || module(p.ImportPath) == "deploy" {
			continue
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			testenv.Must(t, err)
			for _, topic := range publishedIn(file) {
				writers[topic] = append(writers[topic], p.ImportPath)
			}
		}
	}
	for constant, topic := range constants() {
		for _, violation := range writtenByOthers(topic, writers[constant]) {
			t.Error(violation)
		}
	}
	if len(constants()) != len(contract.Topics(0, 0)) {
		t.Error("a topic is missing in constants")
	}
}

// constants returns the topics by their constants' names in the source.
func constants() map[string]contract.Topic {
	byConstant := map[string]contract.Topic{}
	for constant, name := range map[string]string{
		"TopicLogs": contract.TopicLogs, "TopicCredentials": contract.TopicCredentials, "TopicTenants": contract.TopicTenants,
		"TopicAccounts": contract.TopicAccounts, "TopicLedger": contract.TopicLedger, "TopicGrouping": contract.TopicGrouping, "TopicIngest": contract.TopicIngest,
		"TopicErasures": contract.TopicErasures, "TopicOutcomes": contract.TopicOutcomes, "TopicAlerts": contract.TopicAlerts,
		"TopicRules": contract.TopicRules,
	} {
		all := contract.Topics(0, 0)
		if at := slices.IndexFunc(all, func(topic contract.Topic) bool { return topic.Name == name }); at >= 0 {
			byConstant[constant] = all[at]
		}
	}
	return byConstant
}

// writtenByOthers returns what is wrong with the packages that write a topic.
func writtenByOthers(topic contract.Topic, packages []string) (found []string) {
	if len(packages) == 0 {
		found = append(found, fmt.Sprintf("nobody is found to write %s", topic.Name))
	}
	for _, p := range packages {
		if topic.Gathered && p != gatherers[topic.Name] || !topic.Gathered && module(p) != topic.Owner {
			found = append(found, fmt.Sprintf("%s writes %s, which is of %s", p, topic.Name, topic.Owner))
		}
	}
	return found
}

// publishedIn returns the constants of the topics that a file publishes on:
// arguments of calls to Publish and the like, and members of outgoing values.
func publishedIn(file *ast.File) (topics []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(selector.Sel.Name, "Publish") {
				topics = append(topics, topicsOf(n.Args)...)
			}
		case *ast.CompositeLit:
			if outgoing.MatchString(nameOf(n.Type)) {
				topics = append(topics, topicsOf(values(n.Elts))...)
			}
		}
		return true
	})
	return topics
}

// topicsOf returns the constants of topics among expressions.
func topicsOf(expressions []ast.Expr) (topics []string) {
	for _, e := range expressions {
		if name := nameOf(e); strings.HasPrefix(name, "Topic") {
			topics = append(topics, name)
		}
	}
	return topics
}

func values(elements []ast.Expr) (found []ast.Expr) {
	for _, e := range elements {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Value
		}
		found = append(found, e)
	}
	return found
}

// nameOf returns the last part of a name such as contract.TopicLogs;
// empty for other expressions.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// A second writer is found, and a reader is not taken for one.
func TestSecondWritersAreFound(t *testing.T) {
	const source = `package p
func f() {
	p.PublishContext(ctx, contract.TopicLogs, m)
	_ = outbox.Outbox{Topic: contract.TopicLedger}
	_ = bus.ConsumerConfig{Topic: contract.TopicAccounts}
	a.follow(contract.TopicTenants)
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	testenv.Must(t, err)
	if got := publishedIn(file); !slices.Equal(got, []string{"TopicLogs", "TopicLedger"}) {
		t.Errorf("published on %q", got)
	}
	own, gathered := contract.Topic{Name: "own", Owner: "ledger"}, contract.Topic{Name: contract.TopicIngest, Owner: "ingest", Gathered: true}
	for _, c := range []struct {
		topic   contract.Topic
		writers []string
		faults  int
	}{
		{own, []string{prefix + "ledger/internal/bus"}, 0},
		{own, []string{prefix + "ledger/internal/bus", prefix + "grouping/app"}, 1},
		{own, nil, 1},
		{gathered, []string{gatherers[gathered.Name]}, 0},
		{gathered, []string{gatherers[gathered.Name], prefix + "ingest/app"}, 1},
	} {
		if found := writtenByOthers(c.topic, c.writers); len(found) != c.faults {
			t.Errorf("%s written by %q: %q", c.topic.Name, c.writers, found)
		}
	}
}
