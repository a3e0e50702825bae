package testenv

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/port"
)

// PostgresImage is the image of PostgreSQL's containers.
func PostgresImage() string { return cmp.Or(os.Getenv("WEIR_TEST_POSTGRES_IMAGE"), "postgres:17") }

// KafkaImage is the image of Apache Kafka's.
func KafkaImage() string {
	return cmp.Or(os.Getenv("WEIR_TEST_KAFKA_IMAGE"), "apache/kafka:"+apache.Version)
}

// RedisImage is the image of Redis's.
func RedisImage() string { return cmp.Or(os.Getenv("WEIR_TEST_REDIS_IMAGE"), "redis:7") }

// A dockerProcess is a container of the test's own, controlled by
// the command docker: a test with faults does not need the library
// that starts the containers of a whole run.
type dockerProcess struct {
	id     string
	answer func(context.Context) error
}

// runContainer starts a container whose port is published at one of this machine.
func runContainer(image string, inside, port int, env map[string]string, answer func(context.Context) error, args ...string) (*dockerProcess, error) {
	line := []string{"run", "--detach", "--publish", fmt.Sprintf("127.0.0.1:%d:%d", port, inside)}
	for name, value := range env {
		line = append(line, "--env", name+"="+value)
	}
	id, err := docker(append(append(line, image), args...)...)
	if err != nil {
		return nil, err
	}
	p := &dockerProcess{id, answer}
	if err := p.await(); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

func docker(args ...string) (string, error) {
	var out, complaints bytes.Buffer
	cmd := exec.Command("docker", args...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, bytes.TrimSpace(complaints.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

func (p *dockerProcess) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	defer cancel()
	return retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return p.answer(ctx)
	})
}

func (p *dockerProcess) do(what string) error {
	_, err := docker(what, p.id)
	return err
}

// Pause retries: freezing a busy container's threads one by one, as control
// groups of version 1 do, may fail (github.com/opencontainers/runc/pull/2791),
// and then leaves all of them running.
func (p *dockerProcess) Pause() error {
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	defer cancel()
	return retry(ctx, func() error { return p.do("pause") })
}

func (p *dockerProcess) Resume() error  { return p.do("unpause") }
func (p *dockerProcess) Kill() error    { return p.do("kill") }
func (p *dockerProcess) Start() error   { return errors.Join(p.do("start"), p.await()) }
func (p *dockerProcess) Restart() error { return errors.Join(p.Kill(), p.Start()) }

func (p *dockerProcess) remove() error {
	_, err := docker("rm", "--force", "--volumes", p.id)
	return err
}

// containerNode is a Kafka of one node in a container.
func containerNode() (kafkaSet, error) {
	port, err := port.Free()
	if err != nil {
		return kafkaSet{}, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	p, err := runContainer(KafkaImage(), 9092, port, apache.ContainerSettings(port), func(ctx context.Context) error { return pingKafka(ctx, address) })
	if err != nil {
		return kafkaSet{}, err
	}
	return kafkaSet{[]string{address}, []fault.Process{p}, p.remove}, nil
}

// containerPostgres returns the URL of the superuser of a
// PostgreSQL in a container.
func containerPostgres(t testing.TB) (admin string, _ fault.Process, err error) {
	t.Helper()
	port, err := port.Free()
	if err != nil {
		return "", nil, err
	}
	password := rand.Text()
	admin = fmt.Sprintf("postgres://postgres:%s@127.0.0.1:%d/postgres?sslmode=disable", password, port)
	p, err := runContainer(PostgresImage(), 5432, port, map[string]string{"POSTGRES_PASSWORD": password}, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return "", nil, err
	}
	removeAtEnd(t, p)
	return admin, p, nil
}

// redisDurable are Redis's arguments for keeping through a kill
// what it has acknowledged.
var redisDurable = []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""}

// containerRedis returns the URL of a database of a Redis in a container.
func containerRedis(t testing.TB) (string, fault.Process, error) {
	t.Helper()
	port, err := port.Free()
	if err != nil {
		return "", nil, err
	}
	url := fmt.Sprintf("redis://127.0.0.1:%d/0", port)
	answer := func(ctx context.Context) error { return command(ctx, url, "PING") }
	p, err := runContainer(RedisImage(), 6379, port, nil, answer, redisDurable...)
	if err != nil {
		return "", nil, err
	}
	removeAtEnd(t, p)
	return url, p, nil
}

func removeAtEnd(t testing.TB, p *dockerProcess) {
	t.Cleanup(func() {
		if err := p.remove(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
}
