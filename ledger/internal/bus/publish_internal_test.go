package bus

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// published returns the members of each event type of a topic, from its
// golden files.
func published(t *testing.T, topic string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("../../../shared/contract/testdata/" + topic + ".*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files of %s: %v", topic, err)
	}
	events := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		testenv.Must(t, err)
		events[filepath.Base(file[:len(file)-len(".json")])] = members(t, text)
	}
	return events
}

func members(t *testing.T, text []byte) []string {
	t.Helper()
	event := map[string]any{}
	testenv.Must(t, json.Unmarshal(text, &event))
	return slices.Sorted(maps.Keys(event))
}

// Every kind of event maps to one type of weir.ledger.v1 with all
// members ever published. No type is left out.
func TestEveryEventIsMapped(t *testing.T) {
	want, ids := published(t, contract.TopicLedger), map[string]bool{}
	for _, kind := range ledger.EventKinds() {
		event := ledger.Event{Kind: kind, Organization: "acme", Percent: 80, Of: time.Now(), Cause: ledger.Cause{Event: "e", Batch: "b", At: time.Now()}}
		event.Budget.Project = "shop"
		if kind == ledger.BudgetExhausted {
			event.Budget.Spender = ledger.Spender{Key: "key"}
		}
		fact := outboxFact(event)
		if got := members(t, fact.Body); !slices.Equal(got, want[fact.Type]) {
			t.Errorf("kind %d: members %v, want %v of %q", kind, got, want[fact.Type], fact.Type)
		}
		if ids[fact.ID] || fact.ID != event.ID() || fact.Organization != "acme" || !fact.At.Equal(event.Cause.At) {
			t.Errorf("kind %d: fact %+v", kind, fact)
		}
		ids[fact.ID] = true
		delete(want, fact.Type)
	}
	for left := range want {
		t.Errorf("no kind of event is %q", left)
	}
}

// An account state has all members ever published, and its state in the
// contract's words.
func TestAccountStateIsMapped(t *testing.T) {
	want := published(t, contract.TopicAccounts)[contract.TypeAccountChanged]
	account := newAccount(ledger.AccountState{Organization: ledger.Organization{ID: "acme"}}, contract.Positions{0: 1})
	if got := members(t, encode(account)); !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
	for word, want := range map[string]string{
		ledger.Active: contract.AccountActive, ledger.Exhausted: contract.AccountExhausted, ledger.Suspended: contract.AccountSuspended,
	} {
		if word != want {
			t.Errorf("state %q, the contract has %q", word, want)
		}
	}
}

// Not every transaction of charges has a round of account states, of which
// there is one in a second at least. With many states rounds are further apart.
func TestRoundsAreApart(t *testing.T) {
	const transactions = 250 * time.Millisecond // apart, under a light load
	before := time.Duration(0)
	for _, states := range []int{0, 1, 1000, 4000, 1 << 20} {
		pause := pauseAfter(states)
		if pause <= transactions || pause > time.Second || pause < before {
			t.Errorf("the pause after %d states is %s", states, pause)
		}
		before = pause
	}
}
