package testenv_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
)

// faults does each fault to a server and looks for its effect: ask fails
// while it lasts, and works again after it.
func faults(t *testing.T, s *fault.Server, ask func(context.Context) error) {
	t.Helper()
	works := func() {
		t.Helper()
		testenv.Eventually(t, time.Minute, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return ask(ctx)
		})
	}
	works()
	for name, do := range map[string]func(){
		"paused":     func() { s.Pause(t) },
		"killed":     func() { s.Kill(t) },
		"cut":        s.Cut,
		"black hole": s.BlackHole,
	} {
		do()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := ask(ctx); err == nil {
			t.Errorf("%s answers while %s", s.Name, name)
		}
		cancel()
		s.Heal(t)
		works()
	}
	s.Restart(t)
	works()
	s.Delay(20 * time.Millisecond)
	begin := time.Now()
	works()
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("%s answered within %s, over a network that takes 20 ms each way", s.Name, took)
	}
}

func TestFaultsOfPostgres(t *testing.T) {
	db := testenv.FaultyPostgres(t)
	exec(t, db.URL, "CREATE TABLE kept (n int)")
	exec(t, db.URL, "INSERT INTO kept VALUES (1)")
	faults(t, db.Server, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, db.URL)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		var n int
		return conn.QueryRow(ctx, "SELECT n FROM kept").Scan(&n)
	})
}

func TestFaultsOfKafka(t *testing.T) {
	cluster := testenv.FaultyKafka(t, 1)
	createTopic(t, cluster.Brokers(), "test.kept")
	faults(t, cluster.Nodes[0], func(ctx context.Context) error {
		client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Brokers()...), kgo.DisableClientMetrics(), kgo.RequestTimeoutOverhead(time.Second))
		if err != nil {
			return err
		}
		defer client.Close()
		return throughTheNetwork(ctx, client, cluster.Brokers()[0])
	})
}

// throughTheNetwork asks where the brokers and a group's
// coordinator are, which must be the network.
func throughTheNetwork(ctx context.Context, client *kgo.Client, want string) error {
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if b := metadata.Brokers[0]; fmt.Sprintf("%s:%d", b.Host, b.Port) != want {
		return fmt.Errorf("the broker is at %s:%d, want %s", b.Host, b.Port, want)
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = "test.group", []string{"test.group"}
	found, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if len(found.Coordinators) != 1 || fmt.Sprintf("%s:%d", found.Coordinators[0].Host, found.Coordinators[0].Port) != want {
		return fmt.Errorf("the coordinators are %+v, want one at %s", found.Coordinators, want)
	}
	if answer := client.ProduceSync(ctx, &kgo.Record{Topic: "test.kept", Value: []byte("x")}); answer.FirstErr() != nil {
		return answer.FirstErr()
	}
	return nil
}

func TestFaultsOfRedis(t *testing.T) {
	cache := testenv.FaultyRedis(t)
	if answer, err := redis(t.Context(), cache.URL, "SET kept 1"); err != nil || answer != "+OK" {
		t.Fatalf("%q, %v", answer, err)
	}
	faults(t, cache.Server, func(ctx context.Context) error {
		answer, err := redis(ctx, cache.URL, "EXISTS kept")
		if err == nil && answer != ":1" {
			err = errors.New(answer)
		}
		return err
	})
}

// Each test has a Redis database of its own, which is empty.
func TestRedisIsEmpty(t *testing.T) {
	for range 2 {
		t.Run("round", func(t *testing.T) {
			first, second := testenv.Redis(t), testenv.Redis(t)
			if first == second {
				t.Fatal("two databases with one address")
			}
			if answer, err := redis(t.Context(), first, "SETNX only:here 1"); err != nil || answer != ":1" {
				t.Errorf("%q, %v: the database is not empty", answer, err)
			}
			if answer, err := redis(t.Context(), second, "EXISTS only:here"); err != nil || answer != ":0" {
				t.Errorf("%q, %v: the databases are one", answer, err)
			}
		})
	}
}

// redis runs a command in a database and returns the first line of the answer.
func redis(ctx context.Context, address, line string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	in := bufio.NewReader(conn)
	answer := ""
	for _, l := range []string{"SELECT " + strings.Trim(u.Path, "/"), line} {
		fmt.Fprintf(conn, "%s\r\n", l)
		if answer, err = in.ReadString('\n'); err != nil {
			return "", err
		}
	}
	return strings.TrimSpace(answer), nil
}
