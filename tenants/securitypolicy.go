package tenants

import (
	"fmt"
	"slices"
	"time"
)

// A LeakedPolicy is what happens to a key found in public.
type LeakedPolicy string

// Policies for keys found in public, which are always flagged.
const (
	NotifyLeaked LeakedPolicy = "notify" // nothing else
	RotateLeaked LeakedPolicy = "rotate" // it ends after LeakGrace, so that its holders rotate it
	RevokeLeaked LeakedPolicy = "revoke" // it ends at once
)

// A PlainHTTPPolicy is what happens to a key received in plaintext.
type PlainHTTPPolicy string

// Policies for keys received in plaintext, which are always flagged.
const (
	FlagPlainHTTP   PlainHTTPPolicy = "flag"   // nothing else
	RevokePlainHTTP PlainHTTPPolicy = "revoke" // it ends at once
)

// Whether members may sign in with passwords.
const (
	PasswordsAllowed = "allowed"
	PasswordsOff     = "off" // only with a passkey or by the identity provider
)

// LeakedPolicies lists all of them, the mildest first.
func LeakedPolicies() []LeakedPolicy { return []LeakedPolicy{NotifyLeaked, RotateLeaked, RevokeLeaked} }

// PlainHTTPPolicies lists all of them, the mildest first.
func PlainHTTPPolicies() []PlainHTTPPolicy {
	return []PlainHTTPPolicy{FlagPlainHTTP, RevokePlainHTTP}
}

// A SecurityPolicy is what happens in an organization when
// a key is exposed, and whether its members have passwords.
type SecurityPolicy struct {
	Organization  string // empty until it is set; see DefaultSecurityPolicy
	LeakedKeys    LeakedPolicy
	PlainHTTPKeys PlainHTTPPolicy
	SetAt         time.Time // zero: never
	PasswordsOff  bool      // no sign-in with a password, and no new password
}

// DefaultSecurityPolicy is the policy before
// one is set: notify people, and break nothing.
func DefaultSecurityPolicy(organization string) SecurityPolicy {
	return SecurityPolicy{Organization: organization, LeakedKeys: NotifyLeaked, PlainHTTPKeys: FlagPlainHTTP}
}

// SetSecurityPolicy is the command to set the whole policy.
type SetSecurityPolicy struct {
	Organization          string
	LeakedKeys            LeakedPolicy
	PlainHTTPKeys         PlainHTTPPolicy
	PasswordsOff          *bool // nil: unchanged
	By                    Role  // the caller's
	OwnersWithoutPassword int   // owners who can sign in without a password
	At                    time.Time
}

// SecurityPolicySet records an organization's new policy.
type SecurityPolicySet struct {
	Organization  string          `json:"organization"`
	LeakedKeys    LeakedPolicy    `json:"leaked_keys"`
	PlainHTTPKeys PlainHTTPPolicy `json:"plain_http_keys"`
	At            time.Time       `json:"at"`
	PasswordsOff  bool            `json:"passwords_off,omitempty"`
}

func (e SecurityPolicySet) meta() eventMeta {
	return eventMeta{"tenants.v1.security_policy_set", Unpublished, "security_policy.set", e.At, &SecurityPolicy{}, byNext}
}

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

// Set decides on the policy. It is idempotent. Only owners
// decide about passwords, and can't lock themselves out.
func (s SecurityPolicy) Set(cmd SetSecurityPolicy) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	set := SecurityPolicySet{
		Organization: cmd.Organization, LeakedKeys: cmd.LeakedKeys, PlainHTTPKeys: cmd.PlainHTTPKeys, At: cmd.At, PasswordsOff: s.PasswordsOff,
	}
	if cmd.PasswordsOff != nil && *cmd.PasswordsOff != s.PasswordsOff {
		if err := cmd.maySwitchPasswords(); err != nil {
			return nil, err
		}
		set.PasswordsOff = *cmd.PasswordsOff
	}
	if s.Organization != "" && s.LeakedKeys == set.LeakedKeys && s.PlainHTTPKeys == set.PlainHTTPKeys && s.PasswordsOff == set.PasswordsOff {
		return nil, nil
	}
	return []Event{set}, nil
}

// maySwitchPasswords returns why passwords can't be switched on or off.
func (c SetSecurityPolicy) maySwitchPasswords() error {
	switch {
	case !c.By.May(OwnersManage):
		return fmt.Errorf("switch passwords on or off as %q: %w", c.By, ErrForbidden)
	case *c.PasswordsOff && c.OwnersWithoutPassword == 0:
		return Invalid{{"passwords", "No owner of the organization can sign in without a password, so nobody could see to it any more.",
			"Let an owner add a passkey, or sign in by the identity provider once, before passwords are switched off."}}
	}
	return nil
}

// ParsePasswordsOff parses PasswordsAllowed or PasswordsOff;
// nil for "": unchanged. ok is false for another text.
func ParsePasswordsOff(word string) (off *bool, ok bool) {
	switch word {
	case "":
		return nil, true
	case PasswordsAllowed, PasswordsOff:
		off := word == PasswordsOff
		return &off, true
	}
	return nil, false
}

// PasswordPolicy is the policy for passwords as text.
func (s SecurityPolicy) PasswordPolicy() string {
	if s.PasswordsOff {
		return PasswordsOff
	}
	return PasswordsAllowed
}

// Apply applies an event.
func (s *SecurityPolicy) Apply(event Event) {
	switch e := event.(type) {
	case SecurityPolicySet:
		*s = SecurityPolicy{Organization: e.Organization, LeakedKeys: e.LeakedKeys, PlainHTTPKeys: e.PlainHTTPKeys, SetAt: e.At, PasswordsOff: e.PasswordsOff}
	default:
		panic(fmt.Sprintf("BUG: a security policy does not know %T", event))
	}
}

func (s *SecurityPolicy) audited() (Target, Fields) {
	return Target{"security_policy", s.Organization, ""}, Fields{
		"leaked_keys": string(s.LeakedKeys), "plain_http_keys": string(s.PlainHTTPKeys), "passwords_off": s.PasswordsOff,
	}
}
