package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// Account states that the topic has lost are published again: at a
// start, whether the topic lost everything or has an older state; and
// while the ledger runs, once the log gives an offset again.
func TestLostAccountsAreRepublished(t *testing.T) {
	r := newRig(t)
	_, stop := r.start()
	r.create("acme", "indie")
	r.create("other", "scale")
	r.Accept(logs("acme", 100))
	r.awaitAccount("acme")
	r.awaitAccount("other")
	r.awaitCounted()
	older := r.awaitOnTopic("other", "acme")
	r.Accept(logs("acme", 900))
	r.awaitCounted()
	wanted := r.awaitOnTopic("other", "acme")
	if wanted["acme"].State != contract.AccountExhausted || older["acme"].State != contract.AccountActive {
		t.Fatalf("acme is %+v, before %+v", wanted["acme"], older["acme"])
	}
	stop()
	r.mu.Lock()
	r.loses = true
	r.mu.Unlock()

	r.PublishEvent(contract.TopicAccounts, contract.TypeAccountChanged, "acme", older["acme"])
	r.PublishEvent(contract.TopicAccounts, contract.TypeAccountChanged, unreadable, "not an account")
	_, stop = r.start()
	r.awaitStates(wanted)
	stop()

	r.recreate()
	_, _ = r.start()
	r.awaitStates(wanted)

	r.recreate()
	r.Accept(logs("other", 5))
	testenv.Eventually(t, waitTimeout, func() error {
		if now := r.onTopic(); now["other"].Used != 5 || now["acme"].State != contract.AccountExhausted {
			return fmt.Errorf("on the topic: %+v", now)
		}
		return nil
	})
}

// recreate has weir.accounts.v1 lose everything.
func (r *rig) recreate() {
	r.t.Helper()
	topics := contract.Topics(partitions, 0)
	i := slices.IndexFunc(topics, func(topic contract.Topic) bool { return topic.Name == contract.TopicAccounts })
	bustest.ReplaceTopic(r.t, r.config.Brokers, contract.TopicAccounts, 1, topics[i].Config)
}

// unreadable is the key of a record that is no account: it keeps nothing
// from being published.
const unreadable = "unreadable"

// onTopic returns the last state of each account on the topic.
func (r *rig) onTopic() map[string]contract.Account {
	r.t.Helper()
	last := map[string]contract.Account{}
	for _, record := range bustest.ReadAll(r.t, r.config.Brokers, contract.TopicAccounts) {
		if record.Header(contract.HeaderType) == contract.TypeAccountChanged && string(record.Key) != unreadable {
			var account contract.Account
			if err := json.Unmarshal(record.Value, &account); err != nil {
				r.t.Fatal(err)
			}
			last[account.Organization] = account
		}
	}
	return last
}

func (r *rig) awaitOnTopic(organizations ...string) (found map[string]contract.Account) {
	r.t.Helper()
	testenv.Eventually(r.t, waitTimeout, func() error {
		found = r.onTopic()
		for _, organization := range organizations {
			if _, there := found[organization]; !there {
				return fmt.Errorf("there is no account %s", organization)
			}
		}
		return nil
	})
	return found
}

// awaitStates waits until the topic's accounts say what they said before.
func (r *rig) awaitStates(wanted map[string]contract.Account) {
	r.t.Helper()
	testenv.Eventually(r.t, waitTimeout, func() error {
		found := r.onTopic()
		for organization, before := range wanted {
			now := found[organization]
			if now.State != before.State || now.Used != before.Used || now.Quota != before.Quota || now.Version < before.Version {
				return fmt.Errorf("%s is %+v, before %+v", organization, now, before)
			}
		}
		return nil
	})
}
