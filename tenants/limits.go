package tenants

import (
	"cmp"
	"fmt"
	"time"
)

// A Countable is what organizations have a
// limit of. The texts are part of responses.
type Countable string

// What is counted.
const (
	CountProjects      Countable = "projects"
	CountAPIKeys       Countable = "API keys"       // in force
	CountServiceTokens Countable = "service tokens" // in force
	CountMembers       Countable = "members"
	CountInvitations   Countable = "open invitations"
	CountWebhooks      Countable = "webhooks"

	// Existing ones and those that ended within EndedKept,
	// which are still distinguished from unknown ones.
	CountProjectsKept      Countable = "projects that exist or were deleted in the last 30 days"
	CountAPIKeysKept       Countable = "API keys that are in force or ended in the last 30 days"
	CountServiceTokensKept Countable = "service tokens that are in force or ended in the last 30 days"
)

// EndedKept is how long a deleted project and an ended
// key or token are counted, and held by all services.
const EndedKept = 30 * 24 * time.Hour

// keptPer is how many are kept for each that may
// exist: so a leaked key can always be replaced.
const keptPer = 3

// Limits are how much an organization may have at once. 0: the default.
type Limits struct {
	Projects      int
	APIKeys       int
	ServiceTokens int
	Members       int
	Invitations   int
	Sessions      int // of one member; the oldest ends
	Webhooks      int
}

// OrDefault replaces 0 by the default.
func (l Limits) OrDefault() Limits {
	return Limits{
		Projects: cmp.Or(l.Projects, 200), APIKeys: cmp.Or(l.APIKeys, 1000), ServiceTokens: cmp.Or(l.ServiceTokens, 100),
		Members: cmp.Or(l.Members, 500), Invitations: cmp.Or(l.Invitations, 200), Sessions: cmp.Or(l.Sessions, 20),
		Webhooks: cmp.Or(l.Webhooks, 20),
	}
}

// Of is the limit of what.
func (l Limits) Of(what Countable) int {
	switch what {
	case CountProjects:
		return l.Projects
	case CountAPIKeys:
		return l.APIKeys
	case CountServiceTokens:
		return l.ServiceTokens
	case CountMembers:
		return l.Members
	case CountInvitations:
		return l.Invitations
	case CountWebhooks:
		return l.Webhooks
	case CountProjectsKept:
		return keptPer * l.Projects
	case CountAPIKeysKept:
		return keptPer * l.APIKeys
	case CountServiceTokensKept:
		return keptPer * l.ServiceTokens
	}
	panic(fmt.Sprintf("BUG: nobody counts %q", what))
}

// Check is LimitReached if an organization with so many may have no more.
func (l Limits) Check(what Countable, have int) error {
	if limit := l.Of(what); have >= limit {
		return LimitReached{what, limit}
	}
	return nil
}

// LimitReached means that an organization has as many of something as it may.
type LimitReached struct {
	What  Countable
	Limit int
}

// Error implements error.
func (e LimitReached) Error() string {
	return fmt.Sprintf("The organization has %d %s, and may not have more. %s", e.Limit, e.What, e.wayOut())
}

func (e LimitReached) wayOut() string {
	const ask = "ask the operator of this installation to raise the limit."
	switch e.What {
	case CountProjects:
		return "Delete one that is not needed any more, or rename and use it, or " + ask
	case CountMembers:
		return "Remove somebody first, or " + ask
	case CountInvitations:
		return "Revoke one first, or " + ask
	case CountWebhooks:
		return "Delete one first, or " + ask
	case CountAPIKeys, CountServiceTokens:
		return "Revoke one that is not used any more, or " + ask
	}
	return "Wait until it is 30 days since some ended, or " + ask
}

// A Capacity is how many of something an organization has, and may have.
type Capacity struct {
	What        Countable
	Have, Limit int
}

// Full reports whether there can be no more.
func (c Capacity) Full() bool { return c.Have >= c.Limit }

// maxRate is the highest limit of a key, in requests
// per minute, if its organization's is unknown.
const maxRate = 1_000_000

// checkRate returns the fault of a key's own limit, in requests per minute:
// 0 is none; above its organization's (0: unknown) it has no effect.
func checkRate(rate, ceiling int) Invalid {
	if ceiling == 0 {
		ceiling = maxRate
	}
	if rate < 0 || rate > ceiling {
		return Invalid{{"rate_per_minute", fmt.Sprintf("The limit would be %d requests per minute.", rate),
			fmt.Sprintf("Use 1 to %d, the limit of the organization, or 0 for no limit of its own.", ceiling)}}
	}
	return nil
}
