package containers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/port"
)

// A Container that runs.
type Container struct {
	Address   string // URL of PostgreSQL's superuser, or host:port of Kafka
	container testcontainers.Container
}

// stopTime bounds the removal of a container.
const stopTime = time.Minute

// Stop removes the container and its data.
func (c *Container) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return c.container.Terminate(ctx, testcontainers.StopTimeout(0))
}

// pullTime bounds the download of an image, startTime the start of a container.
const (
	pullTime  = 5 * time.Minute
	startTime = 2 * time.Minute
)

// Provides returns nil if a container engine has the image or can pull
// it, else the reason.
func Provides(ctx context.Context, image string) error {
	engine, err := connect(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	return provide(ctx, engine, image)
}

// connect reaches the engine.
func connect(ctx context.Context) (*client.Client, error) {
	engine, err := client.New(client.FromEnv)
	if err != nil {
		return nil, err
	}
	if _, err := engine.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		engine.Close()
		return nil, fmt.Errorf("no container engine answers: %w", err)
	}
	return engine, nil
}

func provide(ctx context.Context, engine *client.Client, image string) error {
	if _, err := engine.ImageInspect(ctx, image); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	progress, err := engine.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		_, err = io.Copy(io.Discard, progress)
		err = errors.Join(err, progress.Close())
	}
	if err == nil {
		_, err = engine.ImageInspect(ctx, image)
	}
	if err != nil {
		return fmt.Errorf("the image %s is not here and cannot be pulled (%w); `make test-images` builds it", image, err)
	}
	return nil
}

// adapt sets variables of testcontainers that some machines need,
// before it reads them. Variables that are set stay.
func adapt(ctx context.Context, engine *client.Client) error {
	if insideContainer() && strings.HasPrefix(engine.DaemonHost(), "unix://") {
		// It would dial the default gateway, as from inside a
		// container; but the engine runs here.
		if err := setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1"); err != nil {
			return err
		}
	}
	if provide(ctx, engine, reaperImage) != nil {
		// Without its image there is no reaper; Stop removes the containers.
		return setDefault("TESTCONTAINERS_RYUK_DISABLED", "true")
	}
	return nil
}

// reaperImage is the image by which this version of testcontainers-go
// removes leftover containers.
const reaperImage = "testcontainers/ryuk:0.14.0"

func insideContainer() bool {
	_, err := os.Stat("/.dockerenv")
	return err == nil
}

func setDefault(name, value string) error {
	if os.Getenv(name) != "" {
		return nil
	}
	return os.Setenv(name, value)
}

// Postgres starts a container of an image compatible with the official
// one: POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB, PGDATA, port
// 5432. Its data can be in memory.
func Postgres(ctx context.Context, image string, inMemory bool) (*Container, error) {
	password := rand.Text()
	options := []testcontainers.ContainerCustomizer{testcontainers.WithExposedPorts("5432/tcp"),
		testcontainers.WithEnv(map[string]string{"POSTGRES_USER": "postgres", "POSTGRES_PASSWORD": password, "POSTGRES_DB": "postgres"}),
		testcontainers.WithCmdArgs("-c", "max_connections=200", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"),
		testcontainers.WithWaitStrategy(wait.ForListeningPort("5432/tcp").WithStartupTimeout(startTime))}
	if inMemory {
		options = append(options, testcontainers.WithEnv(map[string]string{"PGDATA": "/memory/data"}), testcontainers.WithTmpfs(map[string]string{"/memory": ""}))
	}
	c, err := run(ctx, image, options...)
	if err != nil {
		return nil, err
	}
	address, err := c.container.PortEndpoint(ctx, "5432/tcp", "")
	if err != nil {
		return nil, c.fail(ctx, image, err)
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", password), Host: address, Path: "/postgres", RawQuery: "sslmode=disable"}
	c.Address = u.String()
	if err := await(ctx, c.answersSQL); err != nil {
		return nil, c.fail(ctx, image, err)
	}
	return c, nil
}

func (c *Container) answersSQL(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.Address)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Kafka starts a container of an image compatible with apache/kafka: a
// setting a.b.c is the variable KAFKA_A_B_C.
//
// A broker advertises its address, so the port, a free one of this
// machine, is chosen before it starts.
func Kafka(ctx context.Context, image string) (*Container, error) {
	port, err := port.Free()
	if err != nil {
		return nil, err
	}
	c, err := run(ctx, image,
		testcontainers.WithExposedPorts("9092/tcp"), publishAt("9092/tcp", port),
		testcontainers.WithEnv(apache.ContainerSettings(port)))
	if err != nil {
		return nil, err
	}
	c.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := await(ctx, c.answersKafka); err != nil {
		return nil, c.fail(ctx, image, err)
	}
	return c, nil
}

// publishAt maps a port of the container to one of this machine.
func publishAt(inside string, port int) testcontainers.CustomizeRequestOption {
	binding := network.PortBinding{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(port)}
	return testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
		c.PortBindings = network.PortMap{network.MustParsePort(inside): {binding}}
	})
}

func (c *Container) answersKafka(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Address), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

func run(ctx context.Context, image string, options ...testcontainers.ContainerCustomizer) (*Container, error) {
	engine, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	if err := errors.Join(provide(ctx, engine, image), adapt(ctx, engine)); err != nil {
		return nil, err
	}
	log.SetDefault(log.NewNoopLogger()) // an error suffices
	options = append(options, testcontainers.WithLogger(log.Default()))
	c, err := testcontainers.Run(ctx, image, options...)
	if err != nil && c != nil {
		return nil, (&Container{container: c}).fail(ctx, image, err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start a container of %s: %w", image, err)
	}
	return &Container{container: c}, nil
}

// fail removes a failed container and adds the end of its log to err.
func (c *Container) fail(ctx context.Context, image string, err error) error {
	err = fmt.Errorf("cannot use a container of %s: %w", image, err)
	if lines, logErr := c.container.Logs(ctx); logErr == nil {
		words, _ := io.ReadAll(lines)
		err = fmt.Errorf("%w; its log ends with: %s", err, words[max(0, len(words)-1000):])
	}
	return errors.Join(err, c.Stop())
}

// await calls answers until it succeeds.
func await(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer within %s: %w", startTime, err)
		case <-ticker.C:
		}
	}
}
