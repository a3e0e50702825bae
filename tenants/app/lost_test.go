package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// After the topics have lost their end, or everything, no process that
// waits for the comparison lets a revoked key in, a new key works, and
// every fact is there again: by the marks of the relay, and without them
// by the tables alone.
func TestLostRecordsAreRepublished(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, world, *bustest.Forgetful){
		"the end": func(_ *testing.T, _ world, f *bustest.Forgetful) { f.Forget(func() {}) },
		"the end, without marks": func(t *testing.T, w world, f *bustest.Forgetful) {
			f.Forget(func() { w.sql(t, `UPDATE bus_relays SET marks = '[]'`) })
		},
		"everything": func(t *testing.T, _ world, f *bustest.Forgetful) {
			for _, topic := range contract.OwnedBy("tenants", contract.Topics(0, 0)) {
				bustest.ReplaceTopic(t, f.Brokers(), topic.Name, topic.Partitions, topic.Config)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := newWorld(t), bustest.NewForgetful(t)
			w.brokers, w.loses = f.Brokers(), true
			p := w.start(t, operatorToken)
			acme := p.tenant(t, "Acme")
			testenv.Eventually(t, func() error { return w.published(t) })
			p.stop()
			f.Remember()

			p = w.start(t, operatorToken)
			p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", `{"reason":"leaked"}`)
			beta := p.tenant(t, "Beta")
			p.must(t, 200, "PATCH", "/v1/projects/"+beta.project, `{"name":"Renamed"}`)
			testenv.Eventually(t, func() error { return w.published(t) })
			p.stop()
			facts := w.follow(t).factIDs()

			lose(t, w, f)
			if _, err := w.follow(t).Lookup(acme.secret); errors.Is(err, identity.ErrRevoked) {
				t.Fatal("the log has lost nothing")
			}
			w.begin = "begin-2"
			w.start(t, operatorToken)
			n := &neighbour{Credentials: identity.NewCredentials(time.Now)}
			n.AwaitCompared(w.begin)
			testenv.Eventually(t, func() error {
				for _, record := range bustest.ReadAll(t, w.brokers, contract.TopicCredentials) {
					if err := n.Consume(record); err != nil {
						return err
					}
					if n.Compared() != nil {
						continue
					}
					if _, err := n.Lookup(acme.secret); !errors.Is(err, identity.ErrRevoked) {
						t.Fatalf("at offset %d, after the comparison, the revoked key is admitted: %v", record.Offset, err)
					}
				}
				return n.Compared()
			})
			if _, err := n.Lookup(beta.secret); err != nil {
				t.Errorf("the new key: %v", err)
			}
			if got := w.follow(t).factIDs(); !slices.Equal(got, facts) {
				t.Errorf("facts %q, before the loss %q", got, facts)
			}
		})
	}
}

// A running process notices at once that the topic has lost its end, and
// publishes the revocation again, and a marker behind it, before it would
// look.
func TestALossIsRepairedAtOnce(t *testing.T) {
	w, f := newWorld(t), bustest.NewForgetful(t)
	w.brokers, w.loses, w.rests = f.Brokers(), true, true
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	f.Remember()
	p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", `{"reason":"leaked"}`)
	testenv.Eventually(t, func() error { return w.published(t) })
	f.Forget(func() {})
	testenv.Eventually(t, func() error {
		revoked := false
		for _, record := range bustest.ReadAll(t, w.brokers, contract.TopicCredentials) {
			switch string(record.Key) {
			case contract.CredentialKey(acme.secret):
				revoked = bytes.Contains(record.Value, []byte(contract.CredentialRevoked))
			case contract.CredentialsComparedKey:
				if revoked {
					return nil
				}
			}
		}
		return fmt.Errorf("revoked %t, and no marker behind", revoked)
	})
	testenv.Eventually(t, p.Ready)
}

// Where the topic is recreated under a running service, keys that work go
// on working and revoked ones stay revoked, until tenants has published
// all again and a marker behind it.
func TestARecreatedTopicRefusesNoKey(t *testing.T) {
	w := newWorld(t)
	w.loses = true
	p := w.start(t, operatorToken)
	acme, beta := p.tenant(t, "Acme"), p.tenant(t, "Beta")
	p.must(t, 200, "POST", "/v1/api-keys/"+beta.key+"/revoke", `{"reason":"leaked"}`)
	c := identity.NewCredentials(time.Now)
	reader := c.Follow(state.Config{Brokers: w.brokers}, testenv.Logger(t))
	bustest.Run(t, reader.Run)
	<-reader.Ready()
	judged := func() {
		t.Helper()
		if _, err := c.Lookup(acme.secret); err != nil {
			t.Fatalf("the key: %v", err)
		}
		if _, err := c.Lookup(beta.secret); !errors.Is(err, identity.ErrRevoked) {
			t.Fatalf("the revoked key: %v", err)
		}
	}
	p.stop()
	for _, topic := range contract.OwnedBy("tenants", contract.Topics(0, 0)) {
		if topic.Name == contract.TopicCredentials {
			bustest.ReplaceTopic(t, w.brokers, topic.Name, topic.Partitions, topic.Config)
		}
	}
	testenv.Eventually(t, func() error {
		judged()
		if reader.Whole() == nil {
			return errors.New("the loss is not noticed")
		}
		return nil
	})
	w.start(t, operatorToken)
	testenv.Eventually(t, func() error {
		judged()
		return reader.Whole()
	})
	judged()
	w.follow(t).awaitLookup(t, acme.secret, nil)
	if _, err := c.Lookup("weir_stranger"); !errors.Is(err, identity.ErrUnknown) {
		t.Errorf("a stranger: %v", err)
	}
}

// factIDs returns the ids of the facts that a neighbour has, sorted.
func (n *neighbour) factIDs() (ids []string) {
	for _, record := range n.kept() {
		if record.Topic == contract.TopicTenants {
			ids = append(ids, record.Header(contract.HeaderID))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Records that nothing led to go: of a key that has no row, as after a
// lost tombstone, of a fact without an event, and one that can't be read,
// as of a broken producer. What the tables know stays.
func TestSurplusRecordsAreTakenBack(t *testing.T) {
	w := newWorld(t)
	w.loses = true
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	key := contract.CredentialKey("weir_stranger")
	stranger, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_gone", Organization: acme.organization,
		Project: acme.project, State: contract.CredentialActive, Version: 1})
	testenv.Must(t, err)
	unreadable := contract.CredentialKey("weir_unreadable")
	fact := contract.TypeProjectCreated + "/999999999"
	bustest.PublishAll(t, w.brokers, contract.TopicCredentials, foreign(contract.TypeCredentialChanged, key, stranger),
		foreign(contract.TypeCredentialChanged, unreadable, []byte(`{"version":"`)))
	bustest.PublishAll(t, w.brokers, contract.TopicTenants, foreign(contract.TypeProjectCreated, fact, []byte(`{}`)))
	testenv.Eventually(t, func() error {
		has := map[string]bool{}
		for _, topic := range []string{contract.TopicCredentials, contract.TopicTenants} {
			for _, record := range bustest.ReadAll(t, w.brokers, topic) {
				has[string(record.Key)] = len(record.Value) > 0
			}
		}
		if has[key] || has[unreadable] || has[fact] || !has[contract.CredentialKey(acme.secret)] {
			return fmt.Errorf("there are the key: %t, the unreadable one: %t, the fact: %t; that of Acme: %t", has[key], has[unreadable], has[fact],
				has[contract.CredentialKey(acme.secret)])
		}
		return nil
	})
}

func foreign(kind, key string, value []byte) *message.Message {
	m := message.NewMessage(kind+"/foreign", value)
	m.Metadata = contract.Attributes{ID: m.UUID, Type: kind, Source: "elsewhere", Time: time.Now()}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	return m
}

// Tables of an earlier hour than the topic, as after a restored database,
// undo no revocation at a start.
func TestEarlierTablesUndoNoRevocation(t *testing.T) {
	w := newWorld(t)
	w.loses = true
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	testenv.Eventually(t, func() error { return w.published(t) })
	p.stop()
	revoked, err := json.Marshal(contract.Credential{Kind: contract.CredentialAPIKey, ID: acme.key, Organization: acme.organization,
		Project: acme.project, State: contract.CredentialRevoked, Version: 1000})
	testenv.Must(t, err)
	bustest.PublishAll(t, w.brokers, contract.TopicCredentials, foreign(contract.TypeCredentialChanged, contract.CredentialKey(acme.secret), revoked))
	w.begin = "begin-2"
	w.start(t, operatorToken)
	n := &neighbour{Credentials: identity.NewCredentials(time.Now)}
	n.AwaitCompared(w.begin)
	testenv.Eventually(t, func() error {
		for _, record := range bustest.ReadAll(t, w.brokers, contract.TopicCredentials) {
			if err := n.Consume(record); err != nil {
				return err
			}
		}
		return n.Compared()
	})
	if _, err := n.Lookup(acme.secret); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("the revoked key is admitted: %v", err)
	}
}
