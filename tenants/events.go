package tenants

import (
	"encoding/json"
	"fmt"
	"time"
)

// An Event is something that happened. It says all that each
// consumer needs of it at once, so that nothing can be forgotten.
type Event interface{ meta() eventMeta }

// eventMeta is what all events of a type share.
type eventMeta struct {
	name        string // stored and never changed: another form gets a new version
	publication Publication
	action      string // in the audit; stored, too
	at          time.Time
	subject     Subject // of the change, its zero value
	replaced    Replacement
}

// A Replacement is how later events of a type replace an earlier one of
// the stream: they set all that it did, so it can be removed once it is old.
type Replacement struct {
	By     int    // how many later ones replace it; 0: it stays
	Switch string // member of its data: if true there, only later events count in which it is true too; empty: all count
}

var (
	kept   = Replacement{}
	byNext = Replacement{By: 1}
)

// EventName is the stored name of an event.
func EventName(event Event) string { return event.meta().name }

// PublicationOf is how an event is published.
func PublicationOf(event Event) Publication { return event.meta().publication }

// ReplacementOf is how later events replace an event.
func ReplacementOf(event Event) Replacement { return event.meta().replaced }

// A Publication is how an event is published.
type Publication int

// The publications.
const (
	Unpublished         Publication = iota // private to this module: people, proofs of identity
	PublishedFact                          // a fact in weir.tenants.v1
	PublishedCredential                    // the credential that it changes in weir.credentials.v1, and maybe a fact
)

// beginning is the action and the time of an event that starts a thing.
// What a restore had lost was begun at, and readopted later.
func beginning(of, as string, at, readopted time.Time) (string, time.Time) {
	if readopted.IsZero() {
		return of + "." + as, at
	}
	return of + ".readopted", readopted
}

// At is when an event happened.
func At(event Event) time.Time { return event.meta().at }

// An eventKind is a type of event: its zero value, and its decoder.
type eventKind struct {
	zero   Event
	decode func(data []byte) (Event, error)
}

func kind[E Event]() eventKind {
	var zero E
	return eventKind{zero, decode[E]}
}

func decode[E Event](data []byte) (Event, error) {
	var event E
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, err
	}
	return event, nil
}

// eventKinds are all types of events. Others can't be decoded.
func eventKinds() []eventKind {
	return []eventKind{
		kind[OrganizationCreated](),
		kind[OrganizationRenamed](),
		kind[ProjectCreated](),
		kind[ProjectRenamed](),
		kind[DeletionRequested](),
		kind[DeletionCancelled](),
		kind[DeletionBegun](),
		kind[DeletionFinished](),
		kind[APIKeyIssued](),
		kind[APIKeyRevoked](),
		kind[APIKeyRotated](),
		kind[APIKeyChanged](),
		kind[APIKeyExposed](),
		kind[APIKeyCurtailed](),
		kind[SecurityPolicySet](),
		kind[ServiceTokenIssued](),
		kind[ServiceTokenRevoked](),
		kind[MemberAdded](),
		kind[MemberRoleChanged](),
		kind[MemberRemoved](),
		kind[MemberMailsChosen](),
		kind[MemberResetCodeIssued](),
		kind[MemberIdentified](),
		kind[MemberPasswordChanged](),
		kind[InvitationMade](),
		kind[InvitationResent](),
		kind[InvitationRevoked](),
		kind[InvitationAccepted](),
		kind[OwnerCodeIssued](),
		kind[OwnerCodeUsed](),
		kind[SessionStarted](),
		kind[SessionRenewed](),
		kind[SessionConfirmed](),
		kind[SessionEnded](),
		kind[SessionRoleChanged](),
		kind[PasskeyRegistered](),
		kind[PasskeyUsed](),
		kind[PasskeySuspected](),
		kind[PasskeyRemoved](),
		kind[MemberSignInsFailed](),
		kind[WebhookCreated](),
		kind[WebhookChanged](),
		kind[WebhookRotated](),
		kind[WebhookSwitched](),
		kind[WebhookDeleted](),
		kind[ChangeReported](),
	}
}

var kindsByName = byName(eventKinds())

func byName(kinds []eventKind) map[string]eventKind {
	named := make(map[string]eventKind, len(kinds))
	for _, k := range kinds {
		named[EventName(k.zero)] = k
	}
	return named
}

// Events is one of each type of event, empty.
func Events() []Event {
	kinds := eventKinds()
	events := make([]Event, len(kinds))
	for i, k := range kinds {
		events[i] = k.zero
	}
	return events
}

// EncodeEvent returns the stored form of an event.
func EncodeEvent(event Event) (name string, data []byte, err error) {
	data, err = json.Marshal(event)
	return EventName(event), data, err
}

// CanDecode reports whether events of a name can
// be decoded; those of later versions can't.
func CanDecode(name string) bool {
	_, known := kindsByName[name]
	return known
}

// DecodeEvent decodes a stored event of any version, in its newest form.
func DecodeEvent(name string, data []byte) (Event, error) {
	k, known := kindsByName[name]
	if !known {
		return nil, fmt.Errorf("cannot decode event %q: its name is unknown", name)
	}
	return k.decode(data)
}
