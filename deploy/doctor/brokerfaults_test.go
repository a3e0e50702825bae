package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv"
)

var brokerFaults = []fault{
	{"stopped broker", func(_ *testing.T, i *installation, c *Config) { c.Brokers = append([]string{unusable}, i.brokers...) },
		Finding{Check: "broker", Subject: unusable, Level: Fail, Seen: "refused"}},
	{"wrong password at the brokers", func(t *testing.T, _ *installation, c *Config) {
		broker, err := kafka.Start(kafka.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		t.Cleanup(func() { broker.Close() })
		file := filepath.Join(t.TempDir(), "password")
		must(t, os.WriteFile(file, []byte(wrongPassword), 0o600))
		c.Brokers, c.BrokerAccess = []string{broker.Addr()}, bus.Access{User: kafka.User, PasswordFile: file, Mechanism: kafka.Mechanism}
	}, Finding{Check: "broker", Level: Fail, Seen: "refuses the user or the password"}},
	{"too few partitions", func(_ *testing.T, _ *installation, c *Config) { c.LogPartitions = 24 },
		Finding{Check: "topic", Subject: contract.TopicLogs, Level: Warn, Seen: "12 partitions, fewer than 24"}},
	{"wrong cleanup policy", func(t *testing.T, i *installation, _ *Config) {
		i.set(t, contract.TopicCredentials, "cleanup.policy", "delete", "compact")
	}, Finding{Check: "topic", Subject: contract.TopicCredentials, Level: Fail, Seen: `"delete", not "compact"`}},
	{"short retention", func(t *testing.T, i *installation, _ *Config) {
		i.set(t, contract.TopicLedger, "retention.ms", "60000", "2592000000")
	}, Finding{Check: "topic", Subject: contract.TopicLedger, Level: Fail, Seen: "retention.ms is 60000"}},
	{"leader that may lack records", func(t *testing.T, i *installation, _ *Config) {
		i.set(t, contract.TopicLogs, "unclean.leader.election.enable", "true", "false")
	}, Finding{Check: "topic", Subject: contract.TopicLogs, Level: Fail, Seen: "unclean.leader.election.enable is true"}},
	{"clock of a producer that is ahead", func(_ *testing.T, _ *installation, c *Config) {
		c.Machine.Clock = func() time.Time { return time.Now().Add(-time.Hour) }
	}, Finding{Check: "clock", Subject: "producers", Level: Fail, Seen: "in the future"}},
}

// set changes a setting of a topic until the test ends. A broker shows
// it a moment later.
func (i *installation) set(t *testing.T, topic, setting, value, before string) {
	ctx, client := context.WithoutCancel(t.Context()), &segmentio.Client{Addr: segmentio.TCP(i.brokers...)}
	write := func(value string) {
		answer, err := client.IncrementalAlterConfigs(ctx, &segmentio.IncrementalAlterConfigsRequest{
			Resources: []segmentio.IncrementalAlterConfigsRequestResource{{
				ResourceType: segmentio.ResourceTypeTopic, ResourceName: topic,
				Configs: []segmentio.IncrementalAlterConfigsRequestConfig{{Name: setting, Value: value, ConfigOperation: segmentio.ConfigOperationSet}},
			}},
		})
		must(t, err)
		must(t, answer.Resources[0].Error)
		testenv.Eventually(t, waitTimeout, func() error {
			seen, err := cluster.Look(ctx, i.brokers, nil, []string{topic}, []string{setting})
			if got := seen.Topics[topic].Settings[setting]; err == nil && got != value {
				err = fmt.Errorf("%s is %q", setting, got)
			}
			return err
		})
	}
	write(value)
	t.Cleanup(func() { write(before) })
}
