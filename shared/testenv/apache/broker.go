package apache

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Config says where a node lives.
type Config struct {
	Dir   string // its data, settings and log; removed by Stop
	Cache string // where jars are kept between runs; "" means DefaultCache
}

// A Broker is one running node, broker and controller in one.
type Broker struct {
	addr string
	dir  string
	cmd  *exec.Cmd
	pipe io.Closer
	done chan struct{} // closed when it has ended
}

// startTime bounds how long a node may take until it answers.
const startTime = time.Minute

// Start fetches Apache Kafka when it must, starts a node, and returns when it answers.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	if err := checkJava(ctx); err != nil {
		return nil, err
	}
	cache := cfg.Cache
	if cache == "" {
		var err error
		if cache, err = DefaultCache(); err != nil {
			return nil, err
		}
	}
	jars, err := Jars(ctx, cache)
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: cfg.Dir, done: make(chan struct{})}
	if err := b.start(ctx, jars); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

func (b *Broker) start(ctx context.Context, jars string) error {
	client, controller, err := freePorts()
	if err != nil {
		return err
	}
	b.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(client))
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(b.file("server.properties"), []byte(properties(b.dir, client, controller)), 0o600); err != nil {
		return err
	}
	if err := b.format(ctx, jars); err != nil {
		return err
	}
	if err := b.launch(jars); err != nil {
		return err
	}
	return b.await(ctx)
}

func (b *Broker) file(name string) string { return filepath.Join(b.dir, name) }

// properties are those of a single node. Replication factors are 1 as there is nobody to copy to; topics are not made
// by accident; groups form without delay.
func properties(dir string, client, controller int) string {
	lines := []string{
		"process.roles=broker,controller",
		"node.id=1",
		fmt.Sprintf("controller.quorum.voters=1@127.0.0.1:%d", controller),
		fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", client, controller),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://127.0.0.1:%d", client),
		"controller.listener.names=CONTROLLER",
		"log.dirs=" + filepath.Join(dir, "data"),
		"offsets.topic.replication.factor=1",
		"offsets.topic.num.partitions=5",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=5",
		"group.initial.rebalance.delay.ms=0",
		"auto.create.topics.enable=false",
	}
	return strings.Join(lines, "\n") + "\n"
}

func (b *Broker) java(jars string, args ...string) []string {
	return append([]string{"java", "-Xms256m", "-Xmx1g", "-cp", filepath.Join(jars, "*"),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"}, args...)
}

func (b *Broker) format(ctx context.Context, jars string) error {
	random, err := b.tool(ctx, jars, "random-uuid")
	if err != nil {
		return err
	}
	_, err = b.tool(ctx, jars, "format", "-t", strings.TrimSpace(random), "-c", b.file("server.properties"))
	return err
}

// tool runs Kafka's storage tool and returns what it prints.
func (b *Broker) tool(ctx context.Context, jars string, args ...string) (string, error) {
	line := b.java(jars, append([]string{"kafka.tools.StorageTool"}, args...)...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot prepare Apache Kafka in %q: %w: %s", b.dir, err, complaints.Bytes())
	}
	return string(out), nil
}

// runScript runs a node, the command that follows its folder, until it ends or the pipe on descriptor 3 does, which the
// kernel closes when this process ends in whatever way; then the folder is removed as well.
const runScript = `folder=$1; shift
"$@" 3<&- & node=$!
(cat; kill -TERM $node; while kill -0 $node; do sleep 0.1; done; rm -rf "$folder") <&3 >/dev/null 2>&1 &
exec 3<&-
wait $node`

func (b *Broker) launch(jars string) error {
	log, err := os.Create(b.file("server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	held, pipe, err := os.Pipe()
	if err != nil {
		return err
	}
	defer held.Close()
	line := b.java(jars, "kafka.Kafka", b.file("server.properties"))
	b.cmd = exec.Command("/bin/sh", append([]string{"-c", runScript, "weir-apache-kafka", b.dir}, line...)...)
	b.cmd.Stdout, b.cmd.Stderr, b.cmd.ExtraFiles = log, log, []*os.File{held}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the caller, who stops the node in order
	b.pipe = pipe
	if err := b.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(b.done)
		_ = b.cmd.Wait() // the log says more than the exit code
	}()
	return nil
}

// await returns when the node answers.
func (b *Broker) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer client.Close()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		if err = client.Ping(ctx); err == nil {
			return nil
		}
		select {
		case <-b.done:
			return fmt.Errorf("Apache Kafka ended at its start: %s", b.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("Apache Kafka does not answer: %w: %s", err, b.lastWords())
		case <-ticker.C:
		}
	}
}

// lastWords is the end of the node's log.
func (b *Broker) lastWords() string {
	raw, err := os.ReadFile(b.file("server.log"))
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-2000):])
}

// Addr is the node's address, host:port.
func (b *Broker) Addr() string { return b.addr }

// Pid is the process that runs the node's Java, to measure it; 0 when it cannot be told.
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
	if b.cmd != nil && b.cmd.Process != nil {
		err = b.pipe.Close()
		select {
		case <-b.done:
		case <-time.After(stopTime):
			err = errors.Join(fmt.Errorf("Apache Kafka did not stop within %s", stopTime), syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL))
		}
	}
	return cmp.Or(err, os.RemoveAll(b.dir))
}

func freePorts() (first, second int, err error) {
	a, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	defer a.Close()
	b, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	defer b.Close()
	return a.Addr().(*net.TCPAddr).Port, b.Addr().(*net.TCPAddr).Port, nil
}
