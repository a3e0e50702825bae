package tenants

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An ExposureKind is how a key was exposed.
type ExposureKind string

// The kinds of exposure.
const (
	ExposedLeaked    ExposureKind = "leaked"          // found in public
	ExposedPlainHTTP ExposureKind = "plain_http"      // received in plaintext by a socket of Weir
	ExposedForwarded ExposureKind = "forwarded_proto" // a proxy reported that its client used plain HTTP
)

// maxExposures is how many exposures of one key are kept.
const maxExposures = 20

// LeakGrace is how long a leaked key still works where the
// policy is to rotate, as only its holders can replace it.
const LeakGrace = 24 * time.Hour

// An Exposure is one way in which a key was exposed.
type Exposure struct {
	Kind    ExposureKind `json:"kind" enum:"leaked,plain_http,forwarded_proto" description:"Found in public; arrived in clear; a proxy said that its client spoke plain HTTP"`
	Where   string       `json:"where,omitempty"`   // URL of the page with the key; may be empty
	Source  string       `json:"source,omitempty"`  // kind of that page; may be empty
	Address string       `json:"address,omitempty"` // of the request; may be empty
	At      time.Time    `json:"at"`
}

// equal reports whether other is the same exposure.
func (e Exposure) equal(other Exposure) bool {
	return e.Kind == other.Kind && e.Where == other.Where
}

// ExposeAPIKey reports an exposed key. The policy decides what follows.
type ExposeAPIKey struct {
	Exposure

	Policy SecurityPolicy
}

// APIKeyExposed records that others may have an API key.
type APIKeyExposed struct {
	APIKey  string       `json:"api_key"`
	Kind    ExposureKind `json:"kind"`
	Where   string       `json:"where,omitempty"`
	Source  string       `json:"source,omitempty"`
	Address string       `json:"address,omitempty"`
	At      time.Time    `json:"at"`
}

func (e APIKeyExposed) meta() eventMeta {
	return eventMeta{"tenants.v1.api_key_exposed", Unpublished, "api_key.exposed", e.At, &APIKey{}, kept}
}

// APIKeyCurtailed brings the end of an API key forward.
type APIKeyCurtailed struct {
	APIKey    string    `json:"api_key"`
	ExpiresAt time.Time `json:"expires_at"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
}

func (e APIKeyCurtailed) meta() eventMeta {
	return eventMeta{"tenants.v1.api_key_curtailed", PublishedCredential, "api_key.curtailed", e.At, &APIKey{}, kept}
}

// Bounds of reported texts, in bytes.
const (
	maxWhere  = 2000
	maxSource = 100
)

// bounded is the exposure as stored: foreign texts
// are cut, and an address that is no URL is left out.
func (e Exposure) bounded() Exposure {
	ofWeb := strings.HasPrefix(e.Where, "https://") || strings.HasPrefix(e.Where, "http://")
	if !ofWeb || len(e.Where) > maxWhere || checkText("where", e.Where, maxWhere) != nil {
		e.Where = ""
	}
	if len(e.Source) > maxSource || checkText("source", e.Source, maxSource) != nil {
		e.Source = ""
	}
	return e
}

// Expose decides to record a new exposure, and what the policy demands.
// An ended key stays as it is; a proxy's report never ends a key.
func (k APIKey) Expose(cmd ExposeAPIKey) (events []Event, err error) {
	if k.ID == "" {
		return nil, ErrNotFound
	}
	if k.State(cmd.At) != Active {
		return nil, nil
	}
	exposure := cmd.bounded()
	if len(k.Exposures) < maxExposures && !slices.ContainsFunc(k.Exposures, exposure.equal) {
		events = append(events, APIKeyExposed{
			APIKey: k.ID, Kind: exposure.Kind, Where: exposure.Where, Source: exposure.Source, Address: exposure.Address, At: exposure.At,
		})
	}
	return append(events, k.react(exposure, cmd.Policy)...), nil
}

// react is what the policy demands after an exposure. A key of web pages is
// public: that it was found changes nothing.
func (k APIKey) react(exposure Exposure, policy SecurityPolicy) []Event {
	reason := exposure.reason()
	switch {
	case exposure.Kind == ExposedLeaked && len(k.Origins) > 0:
		return nil
	case exposure.Kind == ExposedLeaked && policy.LeakedKeys == RevokeLeaked,
		exposure.Kind == ExposedPlainHTTP && policy.PlainHTTPKeys == RevokePlainHTTP:
		return []Event{APIKeyRevoked{APIKey: k.ID, Reason: reason, At: exposure.At}}
	case exposure.Kind == ExposedLeaked && policy.LeakedKeys == RotateLeaked:
		end := exposure.At.Add(LeakGrace)
		if earlierEnd(k.ExpiresAt, end).Equal(end) && !k.ExpiresAt.Equal(end) && !k.curtailed {
			return []Event{APIKeyCurtailed{APIKey: k.ID, ExpiresAt: end, Reason: reason, At: exposure.At}}
		}
	}
	return nil
}

// reason is why a policy ends a key.
func (e Exposure) reason() string {
	if e.Kind == ExposedPlainHTTP {
		return "arrived over plain HTTP (security policy)"
	}
	if e.Where == "" {
		return "found in public (security policy)"
	}
	return clipText(fmt.Sprintf("found in public at %s (security policy)", e.Where), maxReason)
}

// clipText cuts a text to at most limit characters.
func clipText(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// KeyUsage is how an API key was used. It is not exact: a process
// that dies loses its last seconds. Zero times are never.
type KeyUsage struct {
	Accepted        int64 // requests whose entries were accepted
	Rejected        int64 // requests that failed, not because of the key
	Refused         int64 // requests that failed because the key had ended
	Read            int64 // requests that could read
	AcceptedSince   int64 // of Accepted, those since the key's rotation
	RejectedSince   int64
	ReadSince       int64
	FirstAcceptedAt time.Time
	LastUsedAt      time.Time
	Address         string // of the last use; may be empty
	Client          string // of the last use: its User-Agent; may be empty
}

// Requests is how many requests used the key while it worked.
func (u KeyUsage) Requests() int64 { return u.Accepted + u.Rejected + u.Read }

// RequestsSince is how many of them followed the key's rotation.
func (u KeyUsage) RequestsSince() int64 { return u.AcceptedSince + u.RejectedSince + u.ReadSince }

// A KeyUser is a user of an API key.
type KeyUser struct {
	Address    string
	Client     string // its User-Agent
	LastUsedAt time.Time
}

// A UsedAPIKey is the reported use of an API key over a short time.
type UsedAPIKey struct {
	KeyUsage
	Organization string
	APIKey       string
}
