//go:build replicas

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/docs/docstest"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/contract"
	readreplica "github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// The steps of scale.md under load: another replica of each service,
// which reads from a standby, twice the partitions, a replaced broker,
// and another database for the ledger by the page's commands. Nothing
// is lost or doubled.
func TestScaled(t *testing.T) {
	cluster, programs := kafkatest.Faulty(t, 3), today(t)
	brokers := cluster.Brokers()
	database := postgrestest.NewPair(t)
	r := replicate(t, programs, map[string]string{"WEIR_BROKERS": strings.Join(brokers, ","), "WEIR_DATABASE_URL": database.URL})
	in := r.front()
	seen := in.watch()
	loaded, m, sent := in.tenant(t, t.Context(), "loaded", "scale"), &maker{mark: "loaded"}, &history{}
	traffic(t, t.Context(), in, loaded, m, sent, func(ctx context.Context, _ <-chan struct{}) {
		r.examine(database.Replica, programs)
		for _, s := range r.services {
			s.settings = map[string]string{readreplica.URLVariable: database.Replica}
			r.add(s, programs)
		}
		r.awaitShared(contract.DefaultLogPartitions)
		seen.calm(t)
		widen(t, brokers, 2*contract.DefaultLogPartitions)
		r.awaitShared(2 * contract.DefaultLogPartitions)
		seen.calm(t)
		replace(t, cluster, seen)
		r.move("LEDGER", postgrestest.URL(t), programs)
		seen.calm(t)
	})
	seen.check(t, maxTriesInEvents)
	verify(t, t.Context(), in, loaded, sent)
	r.awaitStandby(loaded)
	r.stop()
	r.verify(programs)
}

// widen raises the log's number of partitions, as kafka-topics.sh does.
func widen(t *testing.T, brokers []string, partitions int32) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(brokers...)}
	answer, err := client.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: contract.TopicLogs, Count: partitions}},
	})
	testenv.Must(t, err)
	testenv.Must(t, answer.Errors[contract.TopicLogs])
}

// replace replaces a lost node by an empty one, and then stops another
// one: the new one then has all newly acknowledged records.
func replace(t *testing.T, cluster *kafkatest.Cluster, seen *answers) {
	t.Helper()
	lost, other := cluster.Nodes[1], cluster.Nodes[2]
	lost.Kill(t)
	seen.calm(t)
	lost.Replace(t)
	awaitInSync(t, cluster)
	other.Kill(t)
	seen.calm(t)
	other.Start(t)
	awaitInSync(t, cluster)
}

// awaitInSync waits until all replicas of every partition are in sync,
// as kafka-topics.sh --under-replicated-partitions shows.
func awaitInSync(t *testing.T, cluster *kafkatest.Cluster) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(cluster.Brokers()...)}
	testenv.Eventually(t, func() error {
		answer, err := client.Metadata(t.Context(), &kafka.MetadataRequest{})
		if err != nil {
			return err
		}
		for _, topic := range answer.Topics {
			for _, partition := range topic.Partitions {
				if len(partition.Replicas) != 3 || len(partition.Isr) != 3 {
					return fmt.Errorf("%s %d has copies on %v, in sync on %v", topic.Name, partition.ID, partition.Replicas, partition.Isr)
				}
			}
		}
		return nil
	})
}

// examine runs the doctor on a read replica, by the commands of the page.
func (r *replicated) examine(standby string, by release) {
	r.t.Helper()
	const well = "it has what the database has"
	out, err := r.follow("scale.md", "Read replicas", by, map[string]string{"STANDBY_URL": standby})
	if found := strings.Count(out, well); found != len(endpoint.Modules) {
		r.t.Errorf("%d of %d modules have a replica that is well: %v\n%s", found, len(endpoint.Modules), err, out)
	}
}

// awaitStandby reads from replicas with a standby until that has answered.
func (r *replicated) awaitStandby(to tenant) {
	r.t.Helper()
	for name, read := range map[string]func(in installation) error{
		"INGEST": func(in installation) error {
			_, err := in.api.Logs(r.t.Context(), to.key, client.LogsQuery{Project: to.project})
			return err
		},
		"GROUPING": func(in installation) error {
			_, err := in.api.ErrorGroups(r.t.Context(), to.key, to.project)
			return err
		},
	} {
		one := r.service(name).replicas[replicasEach]
		testenv.Eventually(r.t, func() error {
			failed := read(r.connect(one.address))
			text, err := metricsAt(one.metrics)
			if err == nil && answeredBy(text, strings.ToLower(name)) == 0 {
				err = fmt.Errorf("%s: the standby has answered nobody:\n%s", name, strings.Join(replicaReads.FindAllString(text, -1), "\n"))
			}
			return errors.Join(failed, err)
		})
	}
}

// follow runs the commands in a section of a page.
func (r *replicated) follow(page, section string, by release, given map[string]string) (output string, err error) {
	r.t.Helper()
	script := strings.ReplaceAll(strings.Join(docstest.BlocksOf(r.t, page, section), ""), "/var/backups", r.t.TempDir())
	shell := exec.CommandContext(r.t.Context(), "sh", "-c", "set -eu\n"+script)
	shell.Env = []string{"PATH=" + string(by) + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for _, variables := range []map[string]string{r.given, given} {
		for name, value := range variables {
			shell.Env = append(shell.Env, name+"="+value)
		}
	}
	out, err := shell.CombinedOutput()
	return string(out), err
}

// move gives a service another database, by the commands of the page.
func (r *replicated) move(name, database string, by release) {
	r.t.Helper()
	s := r.service(name)
	for _, one := range s.replicas {
		r.end(s, one)
	}
	out, err := r.follow("scale.md", "A module moves to another server", by, map[string]string{"NEW_DATABASE_URL": database, "NEW_MIGRATE_DATABASE_URL": database,
		"WEIR_LEDGER_MIGRATE_DATABASE_URL": r.given["WEIR_DATABASE_URL"]}) // the page replaces it
	if err != nil {
		r.t.Fatalf("scale.md: %v\n%s", err, out)
	}
	s.settings = map[string]string{"WEIR_DATABASE_URL": database}
	for _, one := range s.replicas {
		r.begin(s, one, by)
	}
}

// consumers are the services that consume the log.
var consumers = []string{"LEDGER", "GROUPING", "INGEST"}

// assigned matches the log's partitions that a replica consumes.
var assigned = regexp.MustCompile(`(?m)^weir_bus_lag_records\{.*partition="(\d+)".*topic="` + regexp.QuoteMeta(contract.TopicLogs) + `"`)

// awaitShared waits until every replica of each consumer has
// partitions, so many in all.
func (r *replicated) awaitShared(partitions int) {
	r.t.Helper()
	testenv.Eventually(r.t, func() error {
		for _, name := range consumers {
			shares, all, err := r.service(name).shares()
			if err != nil || slices.Min(shares) == 0 || all != partitions {
				return fmt.Errorf("of %d partitions, replicas of %s have %v, %d together: %w", partitions, name, shares, all, err)
			}
		}
		return nil
	})
}

// shares returns how many partitions of the log each replica consumes,
// and all of them.
func (s *service) shares() (shares []int, all int, err error) {
	together := map[string]bool{}
	for _, one := range s.replicas {
		text, err := metricsAt(one.metrics)
		if err != nil {
			return nil, 0, err
		}
		found := assigned.FindAllStringSubmatch(text, -1)
		for _, match := range found {
			together[match[1]] = true
		}
		shares = append(shares, len(found))
	}
	return shares, len(together), nil
}
