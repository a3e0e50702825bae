package tenants

import (
	"fmt"
	"slices"
	"time"
)

// A LeakedPolicy says what happens to a key that was found in public.
type LeakedPolicy string

// What may happen to a key that was found in public. It is always flagged.
const (
	NotifyLeaked LeakedPolicy = "notify" // nothing else
	RotateLeaked LeakedPolicy = "rotate" // it ends after LeakGrace, so that its holders rotate it
	RevokeLeaked LeakedPolicy = "revoke" // it ends at once
)

// A PlainHTTPPolicy says what happens to a key that arrived in clear.
type PlainHTTPPolicy string

// What may happen to a key that arrived in clear. It is always flagged.
const (
	FlagPlainHTTP   PlainHTTPPolicy = "flag"   // nothing else
	RevokePlainHTTP PlainHTTPPolicy = "revoke" // it ends at once
)

// LeakedPolicies lists all of them, the mildest first.
func LeakedPolicies() []LeakedPolicy { return []LeakedPolicy{NotifyLeaked, RotateLeaked, RevokeLeaked} }

// PlainHTTPPolicies lists all of them, the mildest first.
func PlainHTTPPolicies() []PlainHTTPPolicy {
	return []PlainHTTPPolicy{FlagPlainHTTP, RevokePlainHTTP}
}

// A SecurityPolicy is what an organization wants to happen by itself when somebody else may have one of its keys.
type SecurityPolicy struct {
	Organization  string // empty until it is set; see DefaultSecurityPolicy
	LeakedKeys    LeakedPolicy
	PlainHTTPKeys PlainHTTPPolicy
	SetAt         time.Time // zero: never
}

// DefaultSecurityPolicy is the policy of an organization that has set none: tell people, and break nothing.
func DefaultSecurityPolicy(organization string) SecurityPolicy {
	return SecurityPolicy{Organization: organization, LeakedKeys: NotifyLeaked, PlainHTTPKeys: FlagPlainHTTP}
}

// SetSecurityPolicy asks for a policy, whole.
type SetSecurityPolicy struct {
	Organization  string
	LeakedKeys    LeakedPolicy
	PlainHTTPKeys PlainHTTPPolicy
	At            time.Time
}

// SecurityPolicySet says which policy an organization has from now on.
type SecurityPolicySet struct {
	Organization  string          `json:"organization"`
	LeakedKeys    LeakedPolicy    `json:"leaked_keys"`
	PlainHTTPKeys PlainHTTPPolicy `json:"plain_http_keys"`
	At            time.Time       `json:"at"`
}

func (SecurityPolicySet) isEvent() {}

// Check returns Invalid with every fault of the command, or nil.
func (c SetSecurityPolicy) Check() error {
	var faults Invalid
	if !slices.Contains(LeakedPolicies(), c.LeakedKeys) {
		faults = append(faults, Fault{"leaked_keys", fmt.Sprintf("leaked_keys is %q.", c.LeakedKeys), oneOf(LeakedPolicies())})
	}
	if !slices.Contains(PlainHTTPPolicies(), c.PlainHTTPKeys) {
		faults = append(faults, Fault{"plain_http_keys", fmt.Sprintf("plain_http_keys is %q.", c.PlainHTTPKeys), oneOf(PlainHTTPPolicies())})
	}
	return faults.orNil()
}

// Set decides on the policy. Setting what is in force decides nothing.
func (s SecurityPolicy) Set(cmd SetSecurityPolicy) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if s.Organization != "" && s.LeakedKeys == cmd.LeakedKeys && s.PlainHTTPKeys == cmd.PlainHTTPKeys {
		return nil, nil
	}
	return []Event{SecurityPolicySet(cmd)}, nil
}

// Apply brings the policy forward.
func (s *SecurityPolicy) Apply(event Event) {
	switch e := event.(type) {
	case SecurityPolicySet:
		*s = SecurityPolicy{Organization: e.Organization, LeakedKeys: e.LeakedKeys, PlainHTTPKeys: e.PlainHTTPKeys, SetAt: e.At}
	default:
		panic(fmt.Sprintf("BUG: a security policy does not know %T", event))
	}
}
