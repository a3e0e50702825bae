package doctor

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/pg"
)

// oldestPostgres is the oldest tested version.
const oldestPostgres = 15

// databases checks each module's database and its contents.
func (e *examination) databases(ctx context.Context) {
	load := servers{}
	users := map[string]string{} // of the modules
	for _, m := range modules {
		if url, err := endpoint.DatabaseURL(m.name, e.DataDir); err == nil {
			users[m.name] = userOf(url)
		}
	}
	for _, m := range modules {
		if !e.includes(m.name) {
			continue
		}
		o, ok := e.open(ctx, m)
		if !ok {
			continue
		}
		e.server(ctx, o, load)
		e.durability(ctx, o)
		e.replica(ctx, o)
		e.databaseClock(ctx, o)
		e.role(ctx, o, users)
		e.limits(ctx, o)
		e.restored(ctx, o)
		if e.migrations(ctx, o) {
			e.contents(ctx, o)
		}
		o.pool.Close()
	}
	e.connections(load)
}

// contents checks what the module has written.
func (e *examination) contents(ctx context.Context, o opened) {
	e.parked(ctx, o)
	e.consumers(ctx, o)
	e.topicsRead(ctx, o)
	e.outboxes(ctx, o)
	if o.name == "ledger" {
		e.books(ctx, o)
	}
}

// open connects for reading only.
func (e *examination) open(ctx context.Context, m module) (o opened, ok bool) {
	o = opened{module: m}
	var err error
	if o.url, err = endpoint.DatabaseURL(m.name, e.DataDir); err != nil {
		e.report.add(Fail, "database", m.name, err.Error(), fmt.Sprintf(
			"Set %s, or %s where each module has a database of its own; _FILE behind it names a file.", endpoint.SharedDatabase, endpoint.DatabaseOf(m.name)))
		return o, false
	}
	ctx, cancel := context.WithTimeout(ctx, e.CheckTimeout)
	defer cancel()
	begun := e.now()
	if o.pool, err = pg.OpenReaders(ctx, o.url.Reveal(), m.schema.Name, 1); err == nil {
		if err = o.pool.Ping(ctx); err != nil {
			o.pool.Close()
		}
	}
	if err != nil {
		e.report.add(Fail, "database", m.name, err.Error(), pg.Remedy(err))
		return o, false
	}
	config := o.pool.Config().ConnConfig
	took := e.now().Sub(begun).Milliseconds()
	e.report.add(OK, "database", m.name, fmt.Sprintf("%s:%d/%s answers in %d ms", config.Host, config.Port, config.Database, took), "")
	return o, true
}

// Servers are the loads of PostgreSQL servers, by address.
type servers map[string]*load

type load struct {
	most   int // connections for ordinary roles
	needed int
}

// server checks the version, and notes the limit of connections.
func (e *examination) server(ctx context.Context, o opened, all servers) {
	var version string
	var number, most int
	ok := e.look(ctx, "database", o.name, "Look at the server's log.", func(ctx context.Context) error {
		return o.pool.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int,
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
				- coalesce(current_setting('reserved_connections', true)::int, 0)`).Scan(&version, &number, &most)
	})
	if !ok {
		return
	}
	if number/10000 < oldestPostgres {
		e.report.add(Fail, "database", o.name, "PostgreSQL "+version, fmt.Sprintf("Upgrade to PostgreSQL %d or later.", oldestPostgres))
	} else {
		e.report.add(OK, "database", o.name, "PostgreSQL "+version, "")
	}
	config := o.pool.Config().ConnConfig
	address := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if all[address] == nil {
		all[address] = &load{most: most}
	}
	all[address].needed += e.Replicas * o.connections(e.services, o.url)
}

// connections compares the servers' limits with what all processes
// open at most.
func (e *examination) connections(all servers) {
	for _, address := range sorted(all) {
		l := all[address]
		seen := fmt.Sprintf("%d connections are for ordinary roles; with --replicas=%d services open %d at most", l.most, e.Replicas, l.needed)
		fix := "Raise PostgreSQL's max_connections, or lower the pools (pool_max_conns=… in the address)."
		switch {
		case l.needed > l.most:
			e.report.add(Fail, "connections", address, seen, fix)
		case l.needed*10 > l.most*9:
			e.report.add(Warn, "connections", address, seen, fix)
		default:
			e.report.add(OK, "connections", address, seen, "")
		}
	}
}
