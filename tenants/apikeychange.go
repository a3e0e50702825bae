package tenants

import "time"

// ChangeAPIKey is the command to change a
// key's name, limit or access; nil: unchanged.
type ChangeAPIKey struct {
	Name          *string
	RatePerMinute *int // 0: no limit of its own
	Ceiling       int  // requests per minute of the organization; 0: not known
	Access        *Access
	At            time.Time
}

// APIKeyRenamed gives an API key another name.
type APIKeyRenamed struct {
	APIKey string    `json:"api_key"`
	Name   string    `json:"name"`
	At     time.Time `json:"at"`
}

// EventName implements Event.
func (APIKeyRenamed) EventName() string { return "tenants.v1.api_key_renamed" }

func (e APIKeyRenamed) audit() auditForm { return auditForm{"api_key.renamed", e.At, &APIKey{}} }

// Publication implements Event.
func (APIKeyRenamed) Publication() Publication { return Unpublished }

// APIKeyLimited changes an API key's own limit.
type APIKeyLimited struct {
	APIKey        string    `json:"api_key"`
	RatePerMinute int       `json:"rate_per_minute"` // 0: none
	At            time.Time `json:"at"`
}

// EventName implements Event.
func (APIKeyLimited) EventName() string { return "tenants.v1.api_key_limited" }

func (e APIKeyLimited) audit() auditForm { return auditForm{"api_key.limited", e.At, &APIKey{}} }

// Publication implements Event.
func (APIKeyLimited) Publication() Publication { return PublishedCredential }

// Check returns Invalid with every fault of the command, or nil.
func (c ChangeAPIKey) Check() error {
	var faults Invalid
	if c.Name != nil {
		faults = checkName(*c.Name)
	}
	if c.RatePerMinute != nil {
		faults = append(faults, checkRate(*c.RatePerMinute, c.Ceiling)...)
	}
	if c.Access != nil {
		faults = append(faults, c.Access.check()...)
	}
	return faults.orNil()
}

// Change decides on another name, limit and access. What
// stays the same has no event. An ended key can't be changed.
func (k APIKey) Change(cmd ChangeAPIKey) (events []Event, err error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if err := k.usable(cmd.At); err != nil {
		return nil, err
	}
	if cmd.Name != nil && CleanName(*cmd.Name) != k.Name {
		events = append(events, APIKeyRenamed{APIKey: k.ID, Name: CleanName(*cmd.Name), At: cmd.At})
	}
	if cmd.RatePerMinute != nil && *cmd.RatePerMinute != k.RatePerMinute {
		events = append(events, APIKeyLimited{APIKey: k.ID, RatePerMinute: *cmd.RatePerMinute, At: cmd.At})
	}
	if cmd.Access != nil && *cmd.Access != k.Access {
		events = append(events, APIKeyAccessChanged{APIKey: k.ID, Access: *cmd.Access, At: cmd.At})
	}
	return events, nil
}
