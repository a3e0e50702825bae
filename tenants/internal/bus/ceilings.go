package bus

import (
	"encoding/json"
	"log/slog"
	"sync"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// Ceilings are the requests per minute that each organization may send, as weir.accounts.v1 tells them: no key of it
// has a use for a higher limit of its own. Safe for concurrent use.
type Ceilings struct {
	logger *slog.Logger

	mu             sync.RWMutex
	byOrganization map[string]int
}

// NewCeilings returns ceilings of which none is known yet.
func NewCeilings(logger *slog.Logger) *Ceilings {
	return &Ceilings{logger: logger, byOrganization: map[string]int{}}
}

// Apply takes a record of weir.accounts.v1. One that can't be read is reported and passed over.
func (c *Ceilings) Apply(record weirbus.Record) {
	if string(record.Key) == contract.AccountsCountedKey || len(record.Value) == 0 {
		return
	}
	var account contract.Account
	if err := json.Unmarshal(record.Value, &account); err != nil {
		c.logger.Error("cannot read an account", slog.Int64("offset", record.Offset), slog.String("error", err.Error()))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byOrganization[account.Organization] = account.RequestsPerMinute
}

// Of is the ceiling of an organization; 0 where it is not known.
func (c *Ceilings) Of(organization string) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byOrganization[organization]
}
