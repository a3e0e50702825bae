package bus

import (
	"encoding/json"
	"fmt"
	"sync"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// Accounts are the requests per minute that each organization may send, from weir.accounts.v1:
// a key's own limit can't be higher. Safe for concurrent use.
type Accounts struct {
	mu             sync.RWMutex
	byOrganization map[string]int // bounded by the organizations that there are
}

// NewAccounts returns none.
func NewAccounts() *Accounts {
	return &Accounts{byOrganization: map[string]int{}}
}

// Apply takes a record of weir.accounts.v1.
func (a *Accounts) Apply(record weirbus.Record) error {
	if len(record.Value) == 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.byOrganization, string(record.Key))
		return nil
	}
	if record.Header(contract.HeaderType) != contract.TypeAccountChanged {
		return nil
	}
	var account contract.Account
	if err := json.Unmarshal(record.Value, &account); err != nil {
		return fmt.Errorf("cannot read the account %q: %w", record.Key, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byOrganization[account.Organization] = account.RequestsPerMinute
	return nil
}

// RequestsPerMinute is the ceiling of an organization; 0: unknown.
func (a *Accounts) RequestsPerMinute(organization string) int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.byOrganization[organization]
}
