package apache

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv/fault"
)

// Config of a node.
type Config struct {
	Dir   string // its data, settings and log; removed by Stop
	Cache string // where jars are cached; "" means DefaultCache

	// Killable is for nodes that are killed and restarted: the cluster
	// notices within three seconds instead of nine.
	Killable bool

	// Brief is for nodes that live for minutes: Java compiles less, so
	// a run of tests takes a third less CPU, and a node under load is
	// slower. Killable nodes are brief.
	Brief bool

	// Forgets makes a node apply its topics' retention each second
	// instead of every five minutes.
	Forgets bool

	// Secured adds listeners that authenticate clients: see
	// SignInAddr and CertificateAddr.
	Secured *Secured
}

// A Broker is a running node, broker and controller in one.
type Broker struct {
	node
	jars    string
	classes string // Java's option for an archive of its classes; "" for none
	cluster string // its id
	cmd     *exec.Cmd
	pipe    io.Closer
	done    chan struct{} // closed when it has ended
}

// startTime bounds how long a node may take until it answers.
const startTime = time.Minute

// brief reports whether the nodes live for minutes.
func (cfg Config) brief() bool { return cfg.Brief || cfg.Killable }

// Start fetches Apache Kafka if needed, starts a node, and returns
// when it answers.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	nodes, err := StartCluster(ctx, cfg, 1)
	if err != nil {
		return nil, err
	}
	return nodes[0], nil
}

// StartCluster starts so many nodes as one cluster, each in a folder of
// Dir, and returns when all have joined.
func StartCluster(ctx context.Context, cfg Config, size int) (nodes []*Broker, err error) {
	jars, classes, err := prepare(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stopCluster(nodes))
		}
	}()
	plan, err := planCluster(cfg, size)
	if err != nil {
		return nil, err
	}
	for _, n := range plan {
		nodes = append(nodes, &Broker{node: n, jars: jars, classes: classes})
	}
	return nodes, startTogether(ctx, nodes)
}

// prepare checks Java, fetches the jars, and makes the archive of
// classes for brief nodes, whose option it returns.
func prepare(ctx context.Context, cfg Config) (jars, classes string, err error) {
	java, err := checkJava(ctx)
	if err != nil {
		return "", "", err
	}
	if cfg.Cache == "" {
		if cfg.Cache, err = DefaultCache(); err != nil {
			return "", "", err
		}
	}
	jars, err = Jars(ctx, cfg.Cache)
	if err != nil || !cfg.brief() {
		return jars, "", err
	}
	place, err := archive(ctx, java, jars)
	if err != nil || place == "" {
		return jars, "", err
	}
	return jars, "-XX:SharedArchiveFile=" + place, nil
}

// startTogether formats all nodes under one id and starts them: in a
// cluster no node answers before the others are there.
func startTogether(ctx context.Context, nodes []*Broker) error {
	id := clusterID()
	for _, b := range nodes {
		b.cluster = id
		if err := b.format(ctx); err != nil {
			return err
		}
		if err := b.launch(); err != nil {
			return err
		}
	}
	for _, b := range nodes {
		if err := b.await(ctx, len(nodes)); err != nil {
			return err
		}
	}
	return nil
}

// clusterID returns a random id as Kafka's tool does, which would take
// a second longer. None begins with a dash, which the tool would read
// as an option.
func clusterID() string {
	for {
		id := uuid.New()
		if text := base64.RawURLEncoding.EncodeToString(id[:]); text[0] != '-' {
			return text
		}
	}
}

// stopCluster stops all nodes and removes their folders.
func stopCluster(nodes []*Broker) error {
	var errs []error
	for _, b := range nodes {
		errs = append(errs, b.Stop())
	}
	return errors.Join(errs...)
}

func (b *Broker) java(args ...string) []string {
	line := []string{"java", "-Xms" + b.heap.first, "-Xmx" + b.heap.most}
	if b.brief {
		line = append(line, quickStart...)
	}
	if b.classes != "" {
		line = append(line, b.classes)
	}
	return append(append(line, "-cp", filepath.Join(b.jars, "*"), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"), append(b.secured.options(), args...)...)
}

// format makes the node's folder, without data.
func (b *Broker) format(ctx context.Context) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(b.file("server.properties"), []byte(b.properties()), 0o600); err != nil {
		return err
	}
	line := b.java(append([]string{"kafka.tools.StorageTool", "format", "-t", b.cluster, "-c", b.file("server.properties")}, b.secured.credentials()...)...)
	if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot prepare Apache Kafka in %q: %w: %s", b.dir, err, out)
	}
	return nil
}

// runScript runs a node, the command after its folder, until it ends or
// the pipe on descriptor 3 does, which the kernel closes with this
// process; then it removes the folder. So no watcher outlives a killed
// node and mistakes a later process for it.
const runScript = `folder=$1; shift
"$@" 3<&- & node=$!
(cat; trap '' TERM; kill -TERM $node; while kill -0 $node; do sleep 0.1; done; rm -rf "$folder") <&3 >/dev/null 2>&1 & guard=$!
exec 3<&-
wait $node
kill $guard`

func (b *Broker) launch() error {
	log, err := os.OpenFile(b.file("server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	held, pipe, err := os.Pipe()
	if err != nil {
		return err
	}
	defer held.Close()
	line := b.java("kafka.Kafka", b.file("server.properties"))
	b.cmd = exec.Command("/bin/sh", append([]string{"-c", runScript, "weir-apache-kafka", b.dir}, line...)...)
	b.cmd.Stdout, b.cmd.Stderr, b.cmd.ExtraFiles = log, log, []*os.File{held}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the caller, who stops the node in order
	b.pipe = pipe
	if err := b.cmd.Start(); err != nil {
		return err
	}
	cmd, done := b.cmd, make(chan struct{})
	b.done = done
	go func() {
		defer close(done)
		_ = cmd.Wait() // the log has more than the exit code
	}()
	return nil
}

// look is the interval of checks of a starting node; the client itself
// would wait for up to 2.5 seconds.
const look = 50 * time.Millisecond

// await returns when the node answers and sees so many nodes.
func (b *Broker) await(ctx context.Context, size int) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.DisableClientMetrics(), kgo.RetryBackoffFn(func(int) time.Duration { return look }))
	if err != nil {
		return err
	}
	defer client.Close()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if err = sees(ctx, client, size); err == nil {
			return nil
		}
		select {
		case <-b.done:
			return fmt.Errorf("Apache Kafka ended at its start: %s", b.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("Apache Kafka does not answer: %w: %s", err, b.LogTail())
		case <-ticker.C:
		}
	}
}

// sees returns nil if the answering node has so many in its cluster.
func sees(ctx context.Context, client *kgo.Client, size int) error {
	answer, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err == nil && len(answer.Brokers) < size {
		err = fmt.Errorf("%d of %d nodes are there", len(answer.Brokers), size)
	}
	return err
}

// logTail is the size of LogTail: an error with its stack trace.
const logTail = 8 << 10

// LogTail is the end of the node's log.
func (b *Broker) LogTail() string {
	raw, err := os.ReadFile(b.file("server.log"))
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-logTail):])
}

// Addr is the node's address, host:port.
func (b *Broker) Addr() string { return b.addr }

// SignInAddr is a secured node's listener for users, by PLAIN,
// SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.
func (b *Broker) SignInAddr() string { return b.signIn }

// CertificateAddr is a secured node's listener for clients with
// certificates, whose common name is the user.
func (b *Broker) CertificateAddr() string { return b.certified }

// Pid is the process of the node's Java, for measurements; 0 if unknown.
func (b *Broker) Pid() int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", b.cmd.Process.Pid, b.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), " ")
	pid, _ := strconv.Atoi(first)
	return pid
}

// stopTime bounds an orderly stop.
const stopTime = 30 * time.Second

// Stop ends the node and removes its directory.
func (b *Broker) Stop() error {
	var err error
	if b.runs() {
		err = b.pipe.Close()
		select {
		case <-b.done:
		case <-time.After(stopTime):
			err = errors.Join(fmt.Errorf("Apache Kafka did not stop within %s", stopTime), syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL))
		}
	}
	return cmp.Or(err, os.RemoveAll(b.dir))
}

func (b *Broker) runs() bool {
	select {
	case <-b.done:
		return false
	default:
		return b.done != nil
	}
}

// Faults of a node's process. Each returns when it is done.

// Pause stops the process (SIGSTOP).
func (b *Broker) Pause() error { return fault.Stop(b.Pid()) }

// Resume continues it.
func (b *Broker) Resume() error { return syscall.Kill(b.Pid(), syscall.SIGCONT) }

// Kill sends SIGKILL. The folder stays.
func (b *Broker) Kill() error {
	pid := b.Pid()
	if pid == 0 {
		return errors.New("the node does not run")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	<-b.done
	b.pipe.Close()
	return nil
}

// Start starts a killed node with its data, and returns when it answers.
func (b *Broker) Start() error {
	if err := b.launch(); err != nil {
		return err
	}
	return b.await(context.Background(), 1)
}

// Replace starts a node without data under the id of a killed one, and
// returns when it answers.
func (b *Broker) Replace() error {
	if err := os.RemoveAll(b.file("data")); err != nil {
		return err
	}
	if err := b.format(context.Background()); err != nil {
		return err
	}
	return b.Start()
}

// Restart kills the node and starts it.
func (b *Broker) Restart() error { return errors.Join(b.Kill(), b.Start()) }
