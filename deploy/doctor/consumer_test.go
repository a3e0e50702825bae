package doctor

import (
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// Only one waiting record is read, however many there are; only a
// compacted topic may need more to find one.
func TestOldestReadsNoMoreThanItNeeds(t *testing.T) {
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	second := first.Add(-time.Hour) // shows that it was read
	brokers := kafkatest.Brokers(t)
	wanted := map[string]time.Time{"delete": first, "compact": second}
	for policy := range wanted { // before the client caches the topics
		bustest.Ensure(t, brokers, "test.oldest."+policy, 1, map[string]string{"cleanup.policy": policy})
	}
	for policy, want := range wanted {
		name := "test.oldest." + policy
		answer, err := (&segmentio.Client{Addr: segmentio.TCP(brokers...)}).Produce(t.Context(), &segmentio.ProduceRequest{
			Topic: name, RequiredAcks: segmentio.RequireAll, Records: segmentio.NewRecordReader(
				segmentio.Record{Time: first, Key: segmentio.NewBytes([]byte("a")), Value: segmentio.NewBytes([]byte("1"))},
				segmentio.Record{Time: second, Key: segmentio.NewBytes([]byte("b")), Value: segmentio.NewBytes([]byte("2"))},
			),
		})
		testenv.Must(t, err)
		testenv.Must(t, answer.Error)
		seen, err := cluster.Look(t.Context(), brokers, nil, []string{name}, topicSettings)
		testenv.Must(t, err)
		c := &consumerChecker{&moduleChecker{broker: &brokerChecker{brokers: brokers}}}
		oldest, err := c.oldest(t.Context(), seen.Topics[name], []position{{Topic: name}})
		if err != nil || !oldest.Equal(want) {
			t.Errorf("%s: oldest %v, %v, want %v", policy, oldest, err, want)
		}
	}
}

var consumerFaults = []fault{
	{"parked record", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `INSERT INTO grouping.bus_parked (organization, group_name, topic, partition, record_offset, record_time, header_names, header_values, reason)
			VALUES ('org_1', 'grouping.clusters', 'weir.logs.v1', 0, 7, now(), '{}', '{}', 'cannot read it')`, `DELETE FROM grouping.bus_parked`)
	}, Finding{Check: "parked", Subject: "grouping", Level: Warn, Seen: "1 records could not be applied"}},
	{"halted partition", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ingest.bus_positions SET halted = 'its end is gone' WHERE group_name = 'ingest.log-store' AND partition = 3`,
			`UPDATE ingest.bus_positions SET halted = NULL`)
	}, Finding{Check: "consumer", Subject: "ingest.log-store on weir.logs.v1", Level: Fail, Seen: "halted: its end is gone"}},
	{"lag", func(t *testing.T, i *installation, c *Config) {
		c.MaxLag = time.Nanosecond
		i.change(t, `UPDATE ingest.bus_positions SET next = next - 1 WHERE group_name = 'ingest.log-store' AND next > 0`,
			`UPDATE ingest.bus_positions SET next = next + 1 WHERE group_name = 'ingest.log-store' AND partition IN (SELECT partition FROM ledger.ranges)`)
	}, Finding{Check: "consumer", Subject: "ingest.log-store on weir.logs.v1", Level: Fail, Seen: "1 records behind, the oldest waits"}},
	{"log without its end", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ledger.bus_positions SET next = next + 1000 WHERE group_name = 'ledger.quota'`,
			`UPDATE ledger.bus_positions SET next = next - 1000 WHERE group_name = 'ledger.quota'`)
	}, Finding{Check: "consumer", Subject: "ledger.quota on weir.logs.v1", Level: Fail, Seen: "lost its end"}},
	{"log that grew again", func(t *testing.T, i *installation, _ *Config) {
		const change = `UPDATE ledger.bus_positions SET last_sum = last_sum # 1 WHERE group_name = 'ledger.quota'`
		i.change(t, change, change)
	}, Finding{Check: "consumer", Subject: "ledger.quota on weir.logs.v1", Level: Fail, Seen: "has grown since"}},
	{"topic that was recreated", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE tenants.bus_positions SET topic_id = overlay(topic_id::text PLACING '00' FROM 1)::uuid, owner = topic_id::text WHERE group_name = 'tenants.ledger'`,
			`UPDATE tenants.bus_positions SET topic_id = owner::uuid WHERE group_name = 'tenants.ledger'`)
	}, Finding{Check: "consumer", Subject: "tenants.ledger on weir.ledger.v1", Level: Fail, Seen: "another topic"}},
	{"topic without what was read", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE ingest.bus_read SET last_offset = last_offset + 1000`, `UPDATE ingest.bus_read SET last_offset = last_offset - 1000`)
	}, Finding{Check: "read", Subject: "ingest of weir.credentials.v1", Level: Fail, Seen: "outside the log"}},
	{"topic with other records than were read", func(t *testing.T, i *installation, _ *Config) {
		const change = `UPDATE ledger.bus_read SET last_sum = last_sum # 1`
		i.change(t, change, change)
	}, Finding{Check: "read", Subject: "ledger of weir.credentials.v1", Level: Fail, Seen: "another record"}},
	{"consumer that never ran", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `CREATE TABLE ingest.kept AS TABLE ingest.bus_positions; DELETE FROM ingest.bus_positions`,
			`INSERT INTO ingest.bus_positions TABLE ingest.kept; DROP TABLE ingest.kept`)
	}, Finding{Check: "consumer", Subject: "ingest", Level: Warn, Seen: "never applied"}},
	{"halted lane", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `INSERT INTO grouping.bus_deferred (organization, group_name, topic, partition, topic_id, next, last, records, bytes, since, halted)
			VALUES ('org_1', 'grouping.clusters', 'weir.logs.v1', 0, gen_random_uuid(), 0, 9, 9, 900, now(), 'not in the log')`, `DELETE FROM grouping.bus_deferred`)
	}, Finding{Check: "deferred", Subject: "grouping.clusters on weir.logs.v1", Level: Fail, Seen: "halted: not in the log"}},
	{"outbox that nobody publishes", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `INSERT INTO ledger.facts (organization, id, type, at, body) VALUES ('org_1', 'planted', 'x', now(), '{}')`, `DELETE FROM ledger.facts WHERE id = 'planted'`)
	}, Finding{Check: "outbox", Subject: "ledger.facts", Level: Fail, Seen: "no process does it"}},
	{"log that lost what was acknowledged", func(t *testing.T, i *installation, _ *Config) {
		i.change(t, `UPDATE tenants.bus_relays SET lost_at = now() - interval '1 day', lost = 'its end', republished = 12 WHERE name = 'tenants'`,
			`UPDATE tenants.bus_relays SET lost_at = NULL, lost = '', republished = 0 WHERE name = 'tenants'`)
	}, Finding{Check: "outbox", Subject: "tenants", Level: Warn, Seen: "its end; 12 messages were published again"}},
}
