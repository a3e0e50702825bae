package e2e

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Events and faults, by their names on the page of runbooks.
const (
	restarted     = "a replica restarts, an upgrade, another partition or replica"
	killed        = "a process is killed and comes back"
	brokerKilled  = "the broker is killed and comes back"
	databaseBack  = "PostgreSQL is killed and comes back"
	failedOver    = "PostgreSQL fails over to its standby"
	brokerLost    = "one broker of three is lost"
	brokersLost   = "two brokers of three are lost"
	brokerGone    = "no broker answers"
	databaseGone  = "PostgreSQL is gone"
	processGone   = "a process is gone"
	againAndAgain = "a process dies again and again"
	expiring      = "a certificate is about to expire"
	expired       = "a certificate has expired"
	mayNotWrite   = "ingest may not write to the log"
	mayNotRead    = "a module may not read the log"
	inapplicable  = "a record can't be applied"
	endLost       = "the log has lost its end"
	booksChanged  = "books were changed by hand"
)

// recorded are the tests that plant each of these, and let Prometheus judge it.
var recorded = map[string]string{
	restarted: "TestAvailable", failedOver: "TestAvailable", brokerLost: "TestAvailable", brokersLost: "TestAvailable", expired: "TestAvailable",
	killed: "TestAlerted", brokerKilled: "TestAlerted", databaseBack: "TestAlerted", brokerGone: "TestAlerted", databaseGone: "TestAlerted",
	processGone: "TestAlerted", againAndAgain: "TestAlerted", expiring: "TestAlerted", inapplicable: "TestAlerted", endLost: "TestAlerted",
	booksChanged: "TestAlerted", mayNotWrite: "TestSecuredProcesses", mayNotRead: "TestSecuredProcesses",
}

// tried are the faults of make test-faults, with their names on the page.
var tried = map[string][]string{
	"TestFaultPoison":                                 {inapplicable},
	"TestFaults/broker killed":                        {brokerKilled},
	"TestFaults/broker paused":                        {brokerGone},
	"TestFaults/network of the broker":                {brokerGone},
	"TestFaults/leader killed":                        {brokerLost},
	"TestFaults/majority down":                        {brokersLost},
	"TestFaults/consumer killed":                      {killed},
	"TestFaults/consumer of lanes killed":             {killed},
	"TestFaults/consumer stopped":                     {restarted},
	"TestFaults/members come and go":                  {restarted},
	"TestFaults/members with lanes come and go":       {restarted},
	"TestFaults/network of the database":              {databaseGone},
	"TestFaults/database restarted":                   {databaseBack},
	"TestFaults/database killed":                      {databaseBack},
	"TestFaults/database sessions killed":             {databaseBack},
	"TestFaults/database sessions killed under lanes": {databaseBack},
	"TestKilled":             {killed, againAndAgain},
	"TestBesieged":           {killed, databaseBack, brokerKilled},
	"TestUpgraded":           {restarted},
	"TestAvailable":          {restarted, brokerLost, brokersLost, failedOver, expired},
	"TestScaled":             {restarted, brokerLost},
	"TestAlerted":            {againAndAgain},
	"TestSecuredProcesses":   {mayNotWrite, mayNotRead},
	"TestBooksAreTheModel":   nil, // steps, no faults
	"TestARebuildIsTheBooks": nil, // histories, no faults
}

// Each fault of make test-faults is on the page with its alerts, and a
// test lets Prometheus judge each that is on the page.
func TestFaultsAreOnThePage(t *testing.T) {
	page := alertsOnThePage(t)
	if on, judged := slices.Sorted(maps.Keys(page)), slices.Sorted(maps.Keys(recorded)); !slices.Equal(on, judged) {
		t.Errorf("the page has %q, judged are %q", on, judged)
	}
	for _, name := range faultsTried(t) {
		if _, known := tried[name]; !known {
			t.Errorf("make test-faults tries %q: say what it is to an installation", name)
		}
	}
	for name, faults := range tried {
		for _, fault := range faults {
			if _, there := page[fault]; !there {
				t.Errorf("%s is %q, which is not on the page", name, fault)
			}
		}
	}
}

var (
	faultOfBus = regexp.MustCompile(`\{"([a-z ]+)", [a-zA-Z]+\}`)
	testRun    = regexp.MustCompile(`-run='\^Test\(?([\w|]+)\)?\$\$'`)
	faultsAll  = regexp.MustCompile(`(?ms)^KILLED .*?\n|^test-faults: .*?\n\n|^test-upgrade: .*?\n\n|^test-availability: .*?\n\n|^test-alerts: .*?\n\n|^test-secured: .*?\n\n`)
)

// faultsTried returns those of make test-faults.
func faultsTried(t *testing.T) (names []string) {
	t.Helper()
	for _, file := range []string{"fault_test.go", "cluster_apache_test.go"} {
		for _, fault := range faultOfBus.FindAllStringSubmatch(read(t, "../../shared/bus/"+file), -1) {
			names = append(names, "TestFaults/"+fault[1])
		}
	}
	for _, recipe := range faultsAll.FindAllString(read(t, "../../Makefile"), -1) {
		for _, run := range testRun.FindAllStringSubmatch(recipe, -1) {
			for name := range strings.SplitSeq(run[1], "|") {
				names = append(names, "Test"+name)
			}
		}
	}
	if len(names) < 20 {
		t.Fatalf("make test-faults is not read right: %q", names)
	}
	return names
}

// alertsOnThePage returns each fault's alerts, by the page of runbooks.
func alertsOnThePage(t *testing.T) map[string][]string {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "../docs/runbooks/README.md"), "\n| Fault | Alert |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	raised, alert := map[string][]string{}, regexp.MustCompile(`\[(Weir\w+)\]`)
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| (.*) \|$`).FindAllStringSubmatch(table, -1) {
		raised[row[1]] = nil
		for _, match := range alert.FindAllStringSubmatch(row[2], -1) {
			raised[row[1]] = append(raised[row[1]], match[1])
		}
	}
	return raised
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}
