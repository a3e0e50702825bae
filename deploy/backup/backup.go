package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
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

// security matches the lines of a dump's contents that create
// row level security.
var security = regexp.MustCompile(`^\d+; \d+ \d+ (ROW SECURITY|POLICY) `)

// passes writes a dump's contents to two files in a folder: all else,
// and then row level security. In parallel, a table would be closed
// before its policy exists, and foreign keys be compared with nothing.
func passes(ctx context.Context, program, dump, folder string) (lists []string, err error) {
	out, err := exec.CommandContext(ctx, program, "--list", dump).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read the contents of %s: %w", dump, err)
	}
	var parts [2]strings.Builder
	for line := range strings.Lines(string(out)) {
		part := &parts[0]
		if security.MatchString(line) {
			part = &parts[1]
		}
		part.WriteString(line)
	}
	for i := range parts {
		list := filepath.Join(folder, fmt.Sprintf("pass-%d", i+1))
		if err := os.WriteFile(list, []byte(parts[i].String()), 0o600); err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// List returns the folders of whole backups in a directory, oldest first.
func List(dir string) (folders []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		folder := filepath.Join(dir, entry.Name())
		if !entry.IsDir() || !isName(entry.Name()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(folder, ManifestName)); err == nil {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders, err
}

// isName reports whether a folder has a name given by Make: nothing
// else is ever removed.
func isName(name string) bool {
	at, ours := strings.CutPrefix(name, prefix)
	_, err := time.Parse(stamp, at)
	return ours && err == nil
}

// abandoned is the age from which on an unfinished backup is abandoned.
const abandoned = 24 * time.Hour

// forget removes surplus backups and abandoned ones.
func (w *work) forget(now time.Time) error {
	if w.Keep <= 0 {
		return nil
	}
	folders, err := List(w.To)
	if err != nil {
		return err
	}
	gone := folders[:max(0, len(folders)-w.Keep)]
	entries, err := os.ReadDir(w.To)
	for _, entry := range entries {
		name, unfinished := strings.CutSuffix(entry.Name(), partial)
		if unfinished && isName(name) && isOlder(entry, now.Add(-abandoned)) {
			gone = append(gone, filepath.Join(w.To, entry.Name()))
		}
	}
	for _, folder := range gone {
		fmt.Fprintf(w.out, "removing  %s\n", folder)
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

func isOlder(entry fs.DirEntry, than time.Time) bool {
	info, err := entry.Info()
	return err == nil && info.ModTime().Before(than)
}

// tool finds one of PostgreSQL's programs: in a given folder, on PATH,
// or where distributions put them.
func tool(folder, name string) (string, error) {
	if folder != "" {
		return exec.LookPath(filepath.Join(folder, name))
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if folder, err := postgres.Binaries(); err == nil {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s: install PostgreSQL's client programs, of the server's version or later, or name their folder with --postgres-bin", name)
}

// run runs one of PostgreSQL's programs on a database.
func run(ctx context.Context, program string, database httpapi.Secret, args ...string) (err error) {
	l, err := loginOf(database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.forget()) }()
	cmd := exec.CommandContext(ctx, program, append(args, "--no-password", "--dbname="+l.address)...)
	cmd.Env = append(os.Environ(), l.env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, httpapi.Redact(strings.TrimSpace(said.String())))
	}
	return nil
}
