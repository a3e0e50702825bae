package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/process"
)

// Config holds an installation's settings, as its services take them,
// and the place of its backups. Addresses of databases come only from
// the environment or from files.
type Config struct {
	To   string `help:"Directory that backups are put into, a folder for each." env:"WEIR_BACKUP_DIR" required:""`
	Keep int    `help:"How many backups to keep: older ones are removed once this one is whole. 0: all." default:"0"`
	Keys bool   `help:"Copy the files of secrets and certificates too, readable by you alone. Anyone who has them can act as the installation."`
	Jobs int    `help:"How many tables are copied at a time; each takes a connection to the database." default:"2"`

	Source `embed:""`

	Clock func() time.Time `kong:"-"` // nil: the machine's
}

// A Source is an installation's databases and brokers.
type Source struct {
	Brokers      []string   `help:"Kafka brokers, host:port. Without them, the one that weir run has started in the data directory." env:"WEIR_BROKERS"`
	BrokerAccess bus.Access `embed:"" prefix:"brokers-"`

	DataDir     string `help:"Data directory of a weir run; where WEIR_BROKERS or a database is not set, those of this directory are used." env:"WEIR_DATA_DIR" default:".weir"`
	PostgresBin string `name:"postgres-bin" help:"Folder of pg_dump and pg_restore. Without it, those on PATH or where distributions put them." env:"WEIR_POSTGRES_BIN"`
}

// Cluster returns the brokers of the source, and how to sign in there.
func (s Source) Cluster() (brokers []string, dialer *bus.Dialer, err error) {
	brokers, access := s.Brokers, s.BrokerAccess
	if len(brokers) == 0 {
		if brokers, access, err = endpoint.EmbeddedBroker(s.DataDir); err != nil {
			return nil, nil, err
		}
	}
	dialer, err = access.Dialer()
	return brokers, dialer, err
}

// Names of folders: a whole backup, and an unfinished one.
const (
	prefix  = "weir-"
	stamp   = "20060102T150405Z"
	partial = ".partial"
)

// A work is a backup in progress.
type work struct {
	Config

	dir      string // while unfinished
	out      io.Writer
	manifest Manifest
}

// Make makes a backup and returns its folder, which gets its name once
// it is whole. It writes its progress to out. If no broker answers it
// still copies the databases. A folder returned with an error is whole:
// only older ones could not be removed.
func Make(ctx context.Context, config Config, out io.Writer) (dir string, err error) {
	now := time.Now
	if config.Clock != nil {
		now = config.Clock
	}
	dir = filepath.Join(config.To, prefix+now().UTC().Format(stamp))
	if _, err := os.Stat(dir); err == nil {
		return "", fmt.Errorf("%s is there already", dir)
	}
	w := &work{Config: config, dir: dir + partial, out: out}
	w.manifest = Manifest{Format: format, Version: process.Built(), At: now().UTC(), Modules: map[string]Module{}}
	if err := os.MkdirAll(config.To, 0o700); err != nil {
		return "", err
	}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return "", err
	}
	defer func() {
		if dir == "" {
			err = errors.Join(err, os.RemoveAll(w.dir))
		}
	}()
	if err := w.fill(ctx); err != nil {
		return "", err
	}
	if err := w.finish(dir); err != nil {
		return "", err
	}
	if err := w.forget(now()); err != nil {
		return dir, fmt.Errorf("the backup is whole, but what is older could not be removed: %w", err)
	}
	return dir, nil
}

// finish gives the folder its name, durably.
func (w *work) finish(dir string) error {
	if err := w.manifest.write(w.dir); err != nil {
		return err
	}
	if err := os.Rename(w.dir, dir); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(w.To); err != nil {
		return errors.Join(fmt.Errorf("cannot have the name of %s on the disk: %w", dir, err), os.Rename(dir, w.dir))
	}
	return nil
}

func (w *work) fill(ctx context.Context) error {
	program, err := tool(w.PostgresBin, "pg_dump")
	if err != nil {
		return err
	}
	var sources []*source
	defer func() {
		for _, s := range sources {
			s.close(ctx)
		}
	}()
	for _, name := range endpoint.Modules { // all before the first copy: what modules have of one another is of about the same time
		s, err := openSource(ctx, name, w.DataDir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		sources = append(sources, s)
	}
	w.topics(ctx)
	for _, s := range sources {
		if err := w.copy(ctx, program, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.close(ctx) // its locks delay the dropping of partitions
	}
	return w.keys()
}

// copy makes pg_dump copy a module in its snapshot. The log store's
// data is compressed already.
func (w *work) copy(ctx context.Context, program string, s *source) (err error) {
	begun := time.Now()
	fmt.Fprintf(w.out, "%-9s as of %s ...", s.name, s.At.Format(time.RFC3339))
	if s.Rows, err = rows(ctx, s.tx); err != nil {
		fmt.Fprintln(w.out)
		return err
	}
	if err := run(ctx, program, s.database, "--format=directory", "--compress=1", "--jobs="+strconv.Itoa(max(1, w.Jobs)), "--schema="+s.Schema,
		"--snapshot="+s.snapshot, "--enable-row-security", "--no-owner", "--lock-wait-timeout=60s", "--file="+filepath.Join(w.dir, s.name)); err != nil {
		fmt.Fprintln(w.out)
		return err
	}
	if s.Files, err = filesIn(w.dir, s.name); err != nil {
		return err
	}
	w.manifest.Modules[s.name] = s.Module
	fmt.Fprintf(w.out, " %d bytes in %s\n", sizeOf(s.Files), time.Since(begun).Round(time.Millisecond))
	return nil
}

func sizeOf(files []File) (size int64) {
	for _, f := range files {
		size += f.Size
	}
	return size
}

// topicSettings are the settings that a topic must have again.
var topicSettings = []string{"cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes", "segment.ms", "min.insync.replicas"}

const brokersAnswer = 10 * time.Second

// topics notes where the logs begin and end.
func (w *work) topics(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, brokersAnswer)
	defer cancel()
	seen, err := w.look(ctx)
	if err != nil {
		fmt.Fprintf(w.out, "topics    are not noted, for no broker answers: %v\n", err)
		return
	}
	w.manifest.Topics = map[string]Topic{}
	for name, topic := range seen.Topics {
		if topic.Err != nil {
			continue
		}
		noted := Topic{ID: topicID(topic.ID), Settings: topic.Settings}
		for _, p := range topic.Partitions {
			noted.Logs = append(noted.Logs, Log{p.Start, p.End})
		}
		w.manifest.Topics[name] = noted
	}
	fmt.Fprintf(w.out, "topics    %d, where they begin and end\n", len(w.manifest.Topics))
}

func (s Source) look(ctx context.Context) (cluster.Cluster, error) {
	brokers, dialer, err := s.Cluster()
	if err != nil {
		return cluster.Cluster{}, err
	}
	var names []string
	for _, topic := range contract.Topics(0, 0) {
		names = append(names, topic.Name)
	}
	return cluster.Look(ctx, brokers, dialer, names, topicSettings)
}
