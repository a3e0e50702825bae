package bus

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// ErasureConsumer consumes modules' reports
// of erased rows from weir.erasures.v1.
type ErasureConsumer struct {
	// Erased stores a module's report, in a
	// transaction that acts as the system.
	Erased func(ctx context.Context, tx pgx.Tx, of tenants.Deletable, module string, removed map[string]int64) error
}

// Consume applies records in the transaction that moves
// their positions. It ignores unknown types and modules.
func (c ErasureConsumer) Consume(ctx context.Context, tx pgx.Tx, records []weirbus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeErased {
			continue
		}
		var erased contract.Erased
		if err := read(record, &erased); err != nil {
			return err
		}
		if !slices.Contains(contract.ErasingModules(), erased.Module) {
			continue
		}
		if err := c.Erased(ctx, tx, tenants.Deletable{Organization: erased.Organization, Project: erased.Project}, erased.Module, erased.Removed); err != nil {
			return err
		}
	}
	return nil
}
