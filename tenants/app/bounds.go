package app

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/weirlog/weir/tenants"
)

// BoundsConfig bounds what an organization may have, as every
// process holds all of it in memory. A lower limit removes nothing.
type BoundsConfig struct {
	MaxProjects      int `help:"How many projects an organization may have; three times as many with those that were deleted in the last 30 days." env:"WEIR_MAX_PROJECTS" default:"200"`
	MaxAPIKeys       int `help:"How many API keys of an organization may be in force; three times as many with those that ended in the last 30 days." env:"WEIR_MAX_API_KEYS" default:"1000"`
	MaxServiceTokens int `help:"How many service tokens of an organization may be in force; three times as many with those that ended in the last 30 days." env:"WEIR_MAX_SERVICE_TOKENS" default:"100"`
	MaxMembers       int `help:"How many members an organization may have." env:"WEIR_MAX_MEMBERS" default:"500"`
	MaxInvitations   int `help:"How many invitations of an organization may be open." env:"WEIR_MAX_INVITATIONS" default:"200"`
	MaxSessions      int `help:"How many sessions a member may have open; the oldest ends." env:"WEIR_MAX_SESSIONS" default:"20"`
	MaxWebhooks      int `help:"How many webhooks an organization may have." env:"WEIR_MAX_WEBHOOKS" default:"20"`

	ChangesPerMinute int `help:"How many changes a minute, such as creating projects and keys, an organization's tokens may make, and its members; operators fifty times as many." env:"WEIR_CHANGES_PER_MINUTE" default:"120"`
}

// changes is how many changes a minute an organization may make.
func (c BoundsConfig) changes() int { return cmp.Or(c.ChangesPerMinute, defaultChanges) }

const defaultChanges = 120

func (c BoundsConfig) limits() tenants.Limits {
	return tenants.Limits{
		Projects: c.MaxProjects, APIKeys: c.MaxAPIKeys, ServiceTokens: c.MaxServiceTokens, Members: c.MaxMembers,
		Invitations: c.MaxInvitations, Sessions: c.MaxSessions, Webhooks: c.MaxWebhooks,
	}.OrDefault()
}

// validate joins all faults. 0 is the default.
func (c BoundsConfig) validate() error {
	var errs []error
	for setting, value := range map[string]int{
		"WEIR_MAX_PROJECTS": c.MaxProjects, "WEIR_MAX_API_KEYS": c.MaxAPIKeys, "WEIR_MAX_SERVICE_TOKENS": c.MaxServiceTokens,
		"WEIR_MAX_MEMBERS": c.MaxMembers, "WEIR_MAX_INVITATIONS": c.MaxInvitations, "WEIR_MAX_SESSIONS": c.MaxSessions,
		"WEIR_MAX_WEBHOOKS":       c.MaxWebhooks,
		"WEIR_CHANGES_PER_MINUTE": c.ChangesPerMinute,
	} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it can't be negative", setting, value))
		}
	}
	return errors.Join(errs...)
}
