package bus

import (
	"encoding/json"
	"fmt"
	"sync"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
)

// Accounts are the subscriptions of organizations,
// from weir.accounts.v1. Safe for concurrent use.
type Accounts struct {
	mu             sync.RWMutex
	byOrganization map[string]account // bounded by the organizations
}

type account struct {
	tier              tenants.Tier
	requestsPerMinute int
	version           int64
}

// NewAccounts returns no accounts.
func NewAccounts() *Accounts {
	return &Accounts{byOrganization: map[string]account{}}
}

// Apply applies a record of weir.accounts.v1.
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
	var changed contract.Account
	if err := json.Unmarshal(record.Value, &changed); err != nil {
		return fmt.Errorf("cannot read the account %q: %w", record.Key, err)
	}
	a.keep(string(record.Key), account{tenants.Tier(changed.Tier), changed.RequestsPerMinute, changed.Version})
	return nil
}

// keep ignores what is older than the known
// state: the ledger may publish one again.
func (a *Accounts) keep(organization string, changed account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if changed.version >= a.byOrganization[organization].version {
		a.byOrganization[organization] = changed
	}
}

// RequestsPerMinute is an organization's limit,
// which a key's own can't exceed; 0: unknown.
func (a *Accounts) RequestsPerMinute(organization string) int {
	return a.of(organization).requestsPerMinute
}

// Tier is an organization's tier; empty: unknown.
func (a *Accounts) Tier(organization string) tenants.Tier { return a.of(organization).tier }

func (a *Accounts) of(organization string) account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.byOrganization[organization]
}
