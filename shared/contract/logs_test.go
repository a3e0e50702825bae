package contract_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

const batch = "01939c5e-8f00-7cc3-98c4-dc0c0c07398f"

func accepted() contract.LogsAccepted {
	lines := `{"timestamp":"2026-11-21T09:30:00Z","level":"info","message":"hello"}` + "\n" +
		`{"timestamp":"2026-11-21T09:30:01Z","level":"error","message":"\u0000","error":{"type":"E"}}` + "\n"
	return contract.LogsAccepted{
		Batch: batch, Part: 2, Parts: 3, First: 10,
		Organization: "org_1", Project: "prj_1", Environment: "prod", Key: "key_1", Source: "weir/ingest", Time: at,
		Entries: 2, Bytes: int64(len(lines) - 2), Errors: 1,
		Idempotency: "1d", Digest: "d1", Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Lines: []byte(lines),
	}
}

// wire returns a record as text: headers in order, an empty line, the value.
func wire(l contract.LogsAccepted) []byte {
	var text bytes.Buffer
	headers := l.Headers()
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		text.WriteString(name + ": " + headers[name] + "\n")
	}
	text.WriteByte('\n')
	text.Write(l.Lines)
	return text.Bytes()
}

func parseWire(t *testing.T, record []byte) (contract.LogsAccepted, error) {
	t.Helper()
	head, value, found := bytes.Cut(record, []byte("\n\n"))
	if !found {
		t.Fatal("the record has no empty line")
	}
	headers := map[string]string{}
	for line := range strings.Lines(string(head)) {
		name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		headers[name] = text
	}
	return contract.ParseLogsAccepted(func(name string) string { return headers[name] }, value)
}

// The published form of LogsAccepted can be read forever, and is still written.
func TestGoldenLogsAccepted(t *testing.T) {
	kept := accepted()
	kept.RetentionDays = 90
	whole := accepted()
	whole.RequestBytes = 1000
	for name, sample := range map[string]contract.LogsAccepted{"": accepted(), ".retention": kept, ".request": whole} {
		golden := readGolden(t, contract.TypeLogsAccepted+name+".txt", wire(sample))
		read, err := parseWire(t, golden)
		testenv.Must(t, err)
		if written := wire(read); !bytes.Equal(written, golden) {
			t.Errorf("written as\n%s\nwas published as\n%s", written, golden)
		}
		if !reflect.DeepEqual(read, sample) {
			t.Errorf("read %+v, want %+v", read, sample)
		}
	}
}

// Entries keep the retention of their acceptance; older records, which
// have none, the longest of all tiers.
func TestRetentionOfEntries(t *testing.T) {
	logs := accepted()
	if got := logs.Retention(); got != 365 {
		t.Errorf("%d days without a header, want 365", got)
	}
	logs.RetentionDays = 7
	if got := logs.Retention(); got != 7 {
		t.Errorf("%d days, want 7", got)
	}
}

// A malformed record is refused with an error that names the header,
// not applied in part.
func TestParseLogsAcceptedRefuses(t *testing.T) {
	cases := []struct{ header, value, want string }{
		{contract.HeaderType, "weir.logs.v1.rejected", `"weir.logs.v1.rejected"`},
		{contract.HeaderTime, "yesterday", `ce_time="yesterday"`},
		{contract.HeaderBytes, "many", `ce_bytes="many"`},
		{contract.HeaderBytes, "-1", "bytes -1"},
		{contract.HeaderPart, "4", "part 4 of 3"},
		{contract.HeaderEntries, "-1", "entries -1"},
		{contract.HeaderOrganization, "", `organization ""`},
		{contract.HeaderBatch, "01939c5e-8f00-7cc3-98c4-dc0c0c07398G", "98G"},
		{contract.HeaderDigest, "", "without digest"},
		{contract.HeaderRetention, "-1", "retention of -1 days"},
		{contract.HeaderRetention, "3651", "retention of 3651 days"},
		{contract.HeaderRetention, "long", `ce_retention="long"`},
	}
	for _, c := range cases {
		t.Run(c.header+"="+c.value, func(t *testing.T) {
			headers := accepted().Headers()
			headers[c.header] = c.value
			_, err := contract.ParseLogsAccepted(func(name string) string { return headers[name] }, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want one with %s", err, c.want)
			}
		})
	}
}

// Split gives each entry its index in the batch and refuses a value
// whose lines don't match its headers.
func TestSplit(t *testing.T) {
	logs := accepted()
	var indexes []int
	if err := logs.Split(func(index int, _ []byte) error {
		indexes = append(indexes, index)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(indexes, []int{10, 11}) {
		t.Errorf("indexes = %v, want [10 11]", indexes)
	}
	for _, lines := range []string{"{}\n", "{}\n{}", "{}\n{}\n{}\n"} {
		logs.Lines = []byte(lines)
		if err := logs.Split(func(int, []byte) error { return nil }); err == nil {
			t.Errorf("Split(%q) = nil, want an error", lines)
		}
	}
}

// All copies of one idempotency key share a record key, hence a partition;
// a hot project uses all of its sub-keys.
func TestRecordKey(t *testing.T) {
	const spread = 8
	logs, keys := accepted(), map[string]bool{}
	want := logs.RecordKey(spread)
	for i := range 200 {
		logs.Batch = strconv.Itoa(i)
		if got := logs.RecordKey(spread); got != want {
			t.Fatalf("RecordKey = %q for another batch of the same idempotency key, want %q", got, want)
		}
	}
	logs.Idempotency = ""
	for i := range 200 {
		logs.Batch = strconv.Itoa(i)
		keys[logs.RecordKey(spread)] = true
	}
	if len(keys) != spread {
		t.Errorf("%d sub-keys in use, want %d", len(keys), spread)
	}
}

// A consumer group's name owns its positions: a changed name would
// consume everything again.
func TestGroupNamesAreData(t *testing.T) {
	want := []string{"ingest.log-store", "ingest.tenants", "ledger.quota", "ledger.tenants", "grouping.clusters", "grouping.tenants", "tenants.keys", "tenants.erasures",
		"tenants.ledger", "tenants.grouping", "tenants.alerts"}
	got := []string{contract.GroupLogStore, contract.GroupIngestTenants, contract.GroupLedger, contract.GroupLedgerTenants, contract.GroupGrouping,
		contract.GroupGroupingTenants, contract.GroupTenantsKeys, contract.GroupTenantsErasures, contract.GroupTenantsLedger, contract.GroupTenantsGrouping, contract.GroupTenantsAlerts}
	if !slices.Equal(got, want) {
		t.Errorf("groups = %q, want %q", got, want)
	}
}

// Checksums are stored, in inboxes and ranges: those of a record never change.
func TestChecksumsStay(t *testing.T) {
	logs := contract.LogsAccepted{
		Batch: "0193d4c1-7c2a-7000-8000-000000000001", Part: 2, Parts: 3, First: 100, Organization: "acme", Project: "shop", Environment: "prod", Key: "key_1",
		Entries: 50, Bytes: 20_000, Errors: 7,
	}
	if found := logs.Checksum(); found != 0xc5eede97462564e6 {
		t.Errorf("the checksum is %x", found)
	}
}
