package doctor

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/replica"
)

// replica checks whether a module's read replica answers and has caught up.
func (e *examination) replica(ctx context.Context, o opened) {
	url, err := endpoint.ReplicaURL(o.name)
	if err == nil && url == "" {
		return
	}
	if err == nil {
		err = e.checkReplica(ctx, o, replica.Config{DatabaseURL: url, Wait: e.CheckTimeout})
	}
	if err == nil {
		e.report.add(OK, "replica", o.name, "it has what the database has", "")
		return
	}
	e.report.add(Warn, "replica", o.name, err.Error(), fmt.Sprintf("Let %s name a standby of the module's database, and look at the standby's log and, "+
		"on the database, at pg_stat_replication. The database answers until then.", endpoint.ReplicaOf(o.name)))
}

func (e *examination) checkReplica(ctx context.Context, o opened, config replica.Config) error {
	reader, err := replica.Open(ctx, config, replica.Options{
		Schema: o.schema.Name, Conns: 1, Clock: e.now, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer reader.Close()
	return reader.Check(ctx, o.pool)
}
