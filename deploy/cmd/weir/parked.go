package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/deploy/parked"
	busparked "github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
)

const parkedHelp = `A record that a consumer can never apply is set aside, with the reason, so that the records behind it go on. Here you see
what is parked, in the modules that share the database, and decide:

  weir parked list                        what is parked, and why
  weir parked show RECORD                 its headers and its value, safe for a terminal
  weir parked replay RECORD               after the cause is repaired: apply it now
  weir parked replay --all --group NAME   or all of one consumer
  weir parked discard RECORD --yes        it is of no use: forget it for good

A RECORD is group/topic/partition/offset, as list prints it. A replay is done by the module itself, which must be running: its
handler applies the record in one transaction with taking it off this list, exactly once. It applies it now, after all that came
since. Where it fails again, the record stays, with the new reason and one attempt more.`

type parkedCommand struct {
	DatabaseURL httpapi.Secret `help:"Postgres of one module, or of several. Without it, the one that weir run started in the data directory." env:"WEIR_DATABASE_URL"`
	DataDir     string         `help:"Data directory of a running weir." env:"WEIR_DATA_DIR" default:".weir"`

	List    parkedList    `cmd:"" help:"List parked records: which, since when, how often tried, why."`
	Show    parkedShow    `cmd:"" help:"Show one parked record with headers and value."`
	Replay  parkedReplay  `cmd:"" help:"Have parked records applied again by the module they belong to."`
	Discard parkedDiscard `cmd:"" help:"Forget parked records for good."`
}

// Help is called by kong.
func (parkedCommand) Help() string { return parkedHelp }

// store connects to the database.
func (p *parkedCommand) store(ctx context.Context) (*parked.Store, error) {
	url := p.DatabaseURL.Reveal()
	if url == "" {
		var err error
		if url, err = postgres.Running(filepath.Join(p.DataDir, "postgres")); err != nil {
			return nil, fmt.Errorf("there is no database in %q: start `weir run` (make run) first, or name a database with WEIR_DATABASE_URL: %w", p.DataDir, err)
		}
	}
	return parked.Open(ctx, url)
}

// selection selects records: by id, or all of a group or topic.
type selection struct {
	Records []string `arg:"" optional:"" name:"record" help:"Records, as list prints them: group/topic/partition/offset."`
	All     bool     `help:"All records, or with --group and --topic all of those."`
	Group   string   `help:"Only of this consumer group."`
	Topic   string   `help:"Only of this topic."`
}

func (w selection) filters() (filters []busparked.Filter, err error) {
	switch {
	case w.All == (len(w.Records) > 0):
		return nil, errors.New("name records, or say --all (with --group or --topic: all of those)")
	case w.All:
		return []busparked.Filter{{Group: w.Group, Topic: w.Topic}}, nil
	case w.Group != "" || w.Topic != "":
		return nil, errors.New("--group and --topic go with --all: a record's own name has both")
	}
	for _, id := range w.Records {
		filter, err := parked.ParseID(id)
		if err != nil {
			return nil, err
		}
		filters = append(filters, filter)
	}
	return filters, nil
}

type parkedList struct {
	Group string `help:"Only of this consumer group."`
	Topic string `help:"Only of this topic."`
	Limit int    `help:"Most records of each module." default:"100"`
}

// Run is called by kong.
func (l *parkedList) Run(ctx context.Context, p *parkedCommand) error {
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	found, err := store.List(ctx, busparked.Filter{Group: l.Group, Topic: l.Topic}, l.Limit)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		fmt.Fprintln(os.Stdout, "Nothing is parked.")
		return nil
	}
	return parked.Table(os.Stdout, found, time.Now())
}

type parkedShow struct {
	Record string `arg:"" help:"The record, as list prints it."`
	Raw    bool   `help:"Write the value alone, byte for byte: for a file or a pipe, not for a terminal."`
	Bytes  int    `help:"Most bytes of the value to show." default:"4096"`
}

// Run is called by kong.
func (s *parkedShow) Run(ctx context.Context, p *parkedCommand) error {
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	found, err := store.Find(ctx, s.Record)
	if err != nil {
		return err
	}
	if s.Raw {
		_, err := os.Stdout.Write(found.Record.Value)
		return err
	}
	return parked.Details(os.Stdout, found, time.Now(), max(0, s.Bytes))
}

type parkedReplay struct {
	selection

	Wait time.Duration `help:"How long to wait for the outcome. 0: only ask." default:"30s"`
}

// Run is called by kong.
func (r *parkedReplay) Run(ctx context.Context, p *parkedCommand) error {
	filters, err := r.filters()
	if err != nil {
		return err
	}
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	var failed error
	for i, filter := range filters {
		asked, err := store.Replay(ctx, filter)
		if err == nil && asked == 0 {
			err = parked.ErrNone
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", r.name(i), err))
			continue
		}
		fmt.Fprintf(os.Stdout, "Asked for %d to be applied.\n", asked)
		failed = errors.Join(failed, r.outcome(ctx, store, filter))
	}
	return failed
}

func (r *parkedReplay) name(i int) string {
	if r.All {
		return "--all"
	}
	return r.Records[i]
}

// outcome waits and reports what is left.
func (r *parkedReplay) outcome(ctx context.Context, store *parked.Store, filter busparked.Filter) error {
	if r.Wait <= 0 {
		return nil
	}
	left, err := store.Await(ctx, filter, r.Wait)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		fmt.Fprintln(os.Stdout, "Applied.")
		return nil
	}
	if err := parked.Table(os.Stdout, left, time.Now()); err != nil {
		return err
	}
	return fmt.Errorf("%d still parked: where it says that a replay is asked for, is the module running, and its partition not stopped?", len(left))
}

type parkedDiscard struct {
	selection

	Yes bool `help:"Do it. Without it the command only prints what would be forgotten."`
}

// Run is called by kong.
func (d *parkedDiscard) Run(ctx context.Context, p *parkedCommand) error {
	filters, err := d.filters()
	if err != nil {
		return err
	}
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close(ctx)
	for _, filter := range filters {
		if err := d.one(ctx, store, filter); err != nil {
			return err
		}
	}
	return nil
}

func (d *parkedDiscard) one(ctx context.Context, store *parked.Store, filter busparked.Filter) error {
	if d.Yes {
		n, err := store.Discard(ctx, filter)
		if err == nil {
			fmt.Fprintf(os.Stdout, "Discarded %d.\n", n)
		}
		return err
	}
	found, err := store.List(ctx, filter, 100)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return parked.ErrNone
	}
	if err := parked.Table(os.Stdout, found, time.Now()); err != nil {
		return err
	}
	return errors.New("nothing was discarded: say --yes to forget these for good")
}
