package bus

import (
	"encoding/json"
	"fmt"
	"sync"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// AccountLimits are the requests per minute that each organization may send, from weir.accounts.v1:
// a key's own limit can't be higher. Safe for concurrent use.
type AccountLimits struct {
	mu             sync.RWMutex
	byOrganization map[string]int // bounded by the organizations that there are
}

// NewAccountLimits returns empty limits.
func NewAccountLimits() *AccountLimits {
	return &AccountLimits{byOrganization: map[string]int{}}
}

// Apply takes a record of weir.accounts.v1.
func (c *AccountLimits) Apply(record weirbus.Record) error {
	if len(record.Value) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.byOrganization, string(record.Key))
		return nil
	}
	if record.Header(contract.HeaderType) != contract.TypeAccountChanged {
		return nil
	}
	var account contract.Account
	if err := json.Unmarshal(record.Value, &account); err != nil {
		return fmt.Errorf("cannot read the account %q: %w", record.Key, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byOrganization[account.Organization] = account.RequestsPerMinute
	return nil
}

// Of is the ceiling of an organization; 0: unknown.
func (c *AccountLimits) Of(organization string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byOrganization[organization]
}
