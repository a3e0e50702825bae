package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
)

// Messages as well-known programs write them: what stands in braces differs,
// a number before a bar says how often. Each line is one pattern.
var chosenOn = map[string]string{
	"sshd": `
120|Failed password for {user} from {ip} port {n} ssh2
90|Failed password for invalid user {user} from {ip} port {n} ssh2
60|Accepted publickey for {user} from {ip} port {n} ssh2: RSA SHA256:{base64}
80|Connection closed by {ip} [preauth]
40|Received disconnect from {ip}: 11: Bye Bye [preauth]
30|pam_unix(sshd:session): session opened for user {user} by (uid=0)
30|pam_unix(sshd:session): session closed for user {user}
20|reverse mapping checking getaddrinfo for {host} [{ip}] failed - POSSIBLE BREAK-IN ATTEMPT!
10|Server listening on {ip} port 22.
5|error: maximum authentication attempts exceeded for {user} from {ip} port {n} ssh2 [preauth]
2|Did not receive identification string from {ip}`,
	"hdfs": `
100|Receiving block blk_{n} src: /{ip}:{n} dest: /{ip}:50010
100|PacketResponder {d} for block blk_{n} terminating
90|Received block blk_{n} of size {n} from /{ip}
90|BLOCK* NameSystem.addStoredBlock: blockMap updated: {ip}:50010 is added to blk_{n} size {n}
30|BLOCK* NameSystem.allocateBlock: /user/{user}/{file}. blk_{n}
20|Verification succeeded for blk_{n}
20|Deleting block blk_{n} file /mnt/hadoop/dfs/data/current/subdir{d}/blk_{n}
5|writeBlock blk_{n} received exception java.io.IOException: Connection reset by peer
5|Got exception while serving blk_{n} to /{ip}:
2|Unexpected error trying to delete block blk_{n}. BlockInfo not found in volumeMap.`,
	"kubelet": `
60|Successfully pulled image "{registry}/{word}:{version}" in {ms}
60|Created container {word}
60|Started container {word}
40|Successfully assigned {word}/{pod} to {host}
30|Readiness probe failed: HTTP probe failed with statuscode: {n}
20|Back-off restarting failed container {word} in pod {pod}
20|Liveness probe failed: Get "http://{ip}:8080/healthz": context deadline exceeded
10|MountVolume.SetUp failed for volume "{word}" : secret "{word}" not found
10|Stopping container {word}
5|Node {host} status is now: NodeReady
5|Node {host} status is now: NodeNotReady
2|Killing pod {pod} due to memory pressure`,
	"service": `
80|user {user} logged in from {ip}
60|user {user} logged out
50|GET /api/v1/users/{n} {status} in {ms}
50|GET /api/v1/orders/{n}/items {status} in {ms}
40|POST /api/v1/orders {status} in {ms}
30|job {word} started
30|job {word} finished in {ms}
10|job {word} failed: timeout
10|cache miss for key session:{hex}
10|cache hit for key session:{hex}
8|connection to {host} refused
8|connection to {host} established
5|sending mail to {mail}
5|config {file} loaded
3|config {file} is invalid: unexpected end of input at line {n}
2|circuit breaker opened
2|circuit breaker closed
1|shutting down
1|server started`,
	"postgres": `
60|connection received: host={ip} port={n}
60|connection authorized: user={user} database={word} application_name={word}
60|disconnection: session time: {clock} user={user} database={word} host={ip} port={n}
40|duration: {f} ms  statement: SELECT * FROM {word} WHERE id = {n}
40|duration: {f} ms  execute <unnamed>: INSERT INTO {word} VALUES ($1, $2)
20|checkpoint starting: time
20|checkpoint complete: wrote {n} buffers ({f}%); write={f} s, sync={f} s, total={f} s
15|automatic vacuum of table "{word}.public.{word}": index scans: {d}
5|could not receive data from client: Connection reset by peer
5|deadlock detected
3|duplicate key value violates unique constraint "{word}_pkey"
2|canceling statement due to statement timeout
2|canceling statement due to user request`,
}

var reportedOn = map[string]string{
	"kernel": `
60|usb {d}-{d}: new high-speed USB device number {d} using xhci_hcd
60|eth0: link up, {n}Mbps, full-duplex
40|eth0: link down
40|EXT4-fs ({disk}): mounted filesystem with ordered data mode
40|audit: type={n} audit({f}:{n}): apparmor="STATUS" operation="profile_load" name="{word}" pid={n}
30|Out of memory: Killed process {n} ({word}) total-vm:{n}kB, anon-rss:{n}kB
30|{word}[{n}]: segfault at {hex} ip {hex} sp {hex} error {d}
20|CPU{d}: Core temperature above threshold, cpu clock throttled (total events = {n})
10|Buffer I/O error on dev {disk}, logical block {n}, async page read
10|nf_conntrack: table full, dropping packet
5|TCP: request_sock_TCP: Possible SYN flooding on port {n}. Sending cookies.`,
	"nova": `
80|{ip} "GET /v2/{hex32}/servers/detail HTTP/1.1" status: {status} len: {n} time: {f}
40|{ip} "POST /v2/{hex32}/os-server-external-events HTTP/1.1" status: {status} len: {n} time: {f}
60|[instance: {uuid}] VM Started (Lifecycle Event)
60|[instance: {uuid}] VM Stopped (Lifecycle Event)
40|[instance: {uuid}] VM Paused (Lifecycle Event)
40|[instance: {uuid}] Took {f} seconds to build instance.
30|[instance: {uuid}] Took {f} seconds to spawn the instance on the hypervisor.
30|[instance: {uuid}] Terminating instance
20|[instance: {uuid}] Attempting claim: memory {n} MB, disk {n} GB, vcpus {d} CPU
20|image {uuid} at (/var/lib/nova/instances/_base/{hex}): checking
10|Active base files: /var/lib/nova/instances/_base/{hex}
5|Running instance usage audit for host {host} from {date} to {date}. {d} instances.`,
	"spark": `
90|Running task {f} in stage {f} (TID {n})
90|Finished task {f} in stage {f} (TID {n}) in {n} ms on {host} ({d}/{d})
60|Found block rdd_{d}_{d} locally
60|Block broadcast_{d} stored as values in memory (estimated size {f} KB, free {f} MB)
40|Reading broadcast variable {d} took {n} ms
30|Started reading broadcast variable {d}
20|Changing view acls to: {user}
20|Changing modify acls to: {user}
10|Lost executor {d} on {host}: Container killed by YARN for exceeding memory limits
5|Registered signal handlers for [TERM, HUP, INT]
5|Successfully registered with driver`,
	"zookeeper": `
80|Received connection request /{ip}:{n}
70|Accepted socket connection from /{ip}:{n}
60|Established session 0x{hex} with negotiated timeout {n} for client /{ip}:{n}
60|Closed socket connection for client /{ip}:{n} which had sessionid 0x{hex}
50|Expiring session 0x{hex}, timeout of {n}ms exceeded
50|Cannot open channel to {d} at election address {host}/{ip}:3888
30|Connection broken for id {d}, my id = {d}, error =
20|Interrupting SendWorker
20|Send worker leaving thread
10|caught end of stream exception
5|LOOKING
5|FOLLOWING
5|LEADING`,
	"gateway": `
70|upstream {word} answered {status} after {ms}
50|rate limit of tenant {word} exceeded: {n} requests a minute
40|route {word} -> {host}:{n} added
40|route {word} -> {host}:{n} removed
40|certificate of {host} expires in {d} days
30|token of {mail} refreshed
30|token of {mail} expired
20|request {uuid} aborted by client {ip}
20|plugin {word} enabled
10|plugin {word} disabled
5|reloading configuration
5|configuration reloaded in {ms}
5|worker {d} exited with code {d}`,
	"konto": `
60|Benutzer {user} angemeldet von {ip}
40|Überweisung {n} über {f} EUR gebucht
40|用户{n}登录成功
30|订单{n}支付失败：余额不足
30|注文{n}を受け付けました
20|Пользователь {user} вышел
10|Kontostand für {user} nicht verfügbar
5|Datei {file} nicht gefunden`,
}

var nameds = map[string][]string{
	"user":     {"ada", "root", "admin", "grace", "linus", "ken", "barbara", "edsger", "alan", "donald", "niklaus", "margaret", "tim", "radia", "leslie", "john", "oracle", "test", "guest", "ubuntu", "git", "www-data", "postgres", "mysql", "nobody"},
	"host":     {"web-1", "web-2", "db-1.internal", "db-2.internal", "cache.eu-central.acme.example", "ip-10-0-3-7", "mesos-slave-07", "search-a.prod", "search-b.prod", "mail.acme.example", "gw3", "node-12.k8s.acme.example"},
	"word":     {"checkout", "payments", "catalog", "search", "mailer", "billing", "courier", "gateway", "inventory", "profiles", "reports", "sessions", "orders", "customers", "invoices", "metrics", "audit", "feeds"},
	"file":     {"app.yaml", "part-00012", "settings.json", "job.jar", "routes.toml", "users.csv", "log4j.xml", "main.conf", "limits.ini", "theme.css"},
	"disk":     {"sda1", "sdb1", "nvme0n1p2", "dm-0"},
	"registry": {"registry.acme.example", "docker.io", "ghcr.io"},
	"status":   {"200", "201", "204", "400", "404", "500", "503"},
}

var braced = regexp.MustCompile(`\{([a-z0-9]+)\}`)

func filled(random *rand.Rand, line string) string {
	return braced.ReplaceAllStringFunc(line, func(name string) string {
		name = strings.Trim(name, "{}")
		pick := func(of string) string { return nameds[of][random.IntN(len(nameds[of]))] }
		switch name {
		case "n":
			return fmt.Sprint(random.IntN(1 << random.IntN(20)))
		case "d":
			return fmt.Sprint(random.IntN(10))
		case "f":
			return fmt.Sprintf("%.*f", random.IntN(4), random.ExpFloat64()*50)
		case "ms":
			return fmt.Sprintf("%d%s", random.IntN(900), []string{"ms", "s", "us"}[random.IntN(3)])
		case "ip":
			return fmt.Sprintf("10.%d.%d.%d", random.IntN(9), random.IntN(250), random.IntN(250))
		case "hex":
			return fmt.Sprintf("%x", random.Uint64())
		case "hex32", "base64":
			return fmt.Sprintf("%016x%016x", random.Uint64(), random.Uint64())
		case "uuid":
			return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12), random.Uint64N(1<<48))
		case "date":
			return fmt.Sprintf("2026-%02d-%02d %02d:00:00", 1+random.IntN(12), 1+random.IntN(28), random.IntN(24))
		case "clock":
			return fmt.Sprintf("%d:%02d:%02d.%03d", random.IntN(3), random.IntN(60), random.IntN(60), random.IntN(1000))
		case "mail":
			return pick("user") + "@" + pick("word") + ".example"
		case "pod":
			return fmt.Sprintf("%s-%x-%x", pick("word"), random.Uint32(), random.IntN(1<<16))
		case "version":
			return fmt.Sprintf("%d.%d.%d", random.IntN(3), random.IntN(20), random.IntN(20))
		}
		return pick(name)
	})
}

// labelled are messages of a system with the number of their line.
func labelled(random *rand.Rand, system string, many int) (messages []string, labels []int) {
	var lines []string
	var numbers []int
	for i, line := range strings.Split(strings.TrimSpace(system), "\n") {
		share, text, _ := strings.Cut(line, "|")
		var times int
		_, _ = fmt.Sscan(share, &times)
		lines = append(lines, text)
		numbers = append(numbers, slices.Repeat([]int{i}, times)...)
	}
	for range many {
		label := numbers[random.IntN(len(numbers))]
		messages, labels = append(messages, filled(random, lines[label])), append(labels, label)
	}
	return messages, labels
}

// accuracy is the share of messages whose group is all of its line and nothing else.
func accuracy(groups []string, labels []int) float64 {
	type pair struct {
		group string
		label int
	}
	byGroup, byLabel, byPair := map[string]int{}, map[int]int{}, map[pair]int{}
	for i, group := range groups {
		byGroup[group]++
		byLabel[labels[i]]++
		byPair[pair{group, labels[i]}]++
	}
	right := 0
	for p, n := range byPair {
		if n == byGroup[p.group] && n == byLabel[p.label] {
			right += n
		}
	}
	return float64(right) / float64(len(groups))
}

// Patterns find the lines of programs that they were not made with, and masks
// alone do not.
func TestPatternsFindTheLinesOfPrograms(t *testing.T) {
	for name, systems := range map[string]map[string]string{"chosen on": chosenOn, "reported on": reportedOn} {
		var ofMasks, ofPatterns float64
		for system, text := range systems {
			messages, labels := labelled(rand.New(rand.NewPCG(1, 1)), text, 2000)
			masks, patterns := ingest.GroupsOf(messages)
			m, p := accuracy(masks, labels), accuracy(patterns, labels)
			ofMasks, ofPatterns = ofMasks+m/float64(len(systems)), ofPatterns+p/float64(len(systems))
			t.Logf("%s %-10s masks %.3f, patterns %.3f", name, system, m, p)
		}
		t.Logf("%s all: masks %.3f, patterns %.3f", name, ofMasks, ofPatterns)
		if ofPatterns < 0.95 || ofMasks > 0.8 {
			t.Errorf("%s: masks %.3f, patterns %.3f", name, ofMasks, ofPatterns)
		}
	}
}
