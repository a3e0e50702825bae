package apache

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/testenv/port"
)

// A node is the plan of a node before it starts.
type node struct {
	id         int
	addr       string // where clients connect, and the other nodes
	controller string
	signIn     string // where clients of users connect
	certified  string // where clients with certificates connect
	secured    *Secured
	voters     string // of all nodes: id@address,…
	copies     int    // of the broker's own topics
	dir        string
	heap       heap
	killable   bool
	brief      bool
	forgets    bool
}

// A heap is Java's memory.
type heap struct{ first, most string }

// quickStart are Java's options for a short life: half the work until
// it answers, less speed later.
var quickStart = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"}

var (
	heapAlone   = heap{"256m", "1g"}
	heapOfThree = heap{"128m", "384m"} // there are several on one machine
)

// planCluster chooses ports and folders.
func planCluster(cfg Config, size int) ([]node, error) {
	addresses, err := freeAddresses(4 * size)
	if err != nil {
		return nil, err
	}
	nodes := make([]node, size)
	voters := make([]string, size)
	for i := range nodes {
		n := node{id: i + 1, addr: addresses[4*i], controller: addresses[4*i+1], signIn: addresses[4*i+2], certified: addresses[4*i+3],
			secured: cfg.Secured, copies: min(3, size), dir: cfg.Dir, heap: heapAlone, killable: cfg.Killable, brief: cfg.brief(), forgets: cfg.Forgets}
		if size > 1 {
			n.dir, n.heap = filepath.Join(cfg.Dir, strconv.Itoa(n.id)), heapOfThree
		}
		nodes[i], voters[i] = n, fmt.Sprintf("%d@%s", n.id, n.controller)
	}
	for i := range nodes {
		nodes[i].voters = strings.Join(voters, ",")
	}
	return nodes, nil
}

func freeAddresses(n int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		free, err := port.Free()
		if err != nil {
			return nil, err
		}
		addresses[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(free))
	}
	return addresses, nil
}

func (n node) file(name string) string { return filepath.Join(n.dir, name) }

// clients returns the listeners for clients.
func (n node) clients() string {
	listeners := "PLAINTEXT://" + n.addr
	if n.secured != nil {
		listeners += fmt.Sprintf(",USERS://%s,CERTIFIED://%s", n.signIn, n.certified)
	}
	return listeners
}

// properties configures a node. Topics are not created automatically;
// groups form without delay.
func (n node) properties() string {
	lines := []string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", n.id),
		"controller.quorum.voters=" + n.voters,
		fmt.Sprintf("listeners=%s,CONTROLLER://%s", n.clients(), n.controller),
		"advertised.listeners=" + n.clients(),
		"controller.listener.names=CONTROLLER",
		"log.dirs=" + n.file("data"),
		fmt.Sprintf("offsets.topic.replication.factor=%d", n.copies),
		"offsets.topic.num.partitions=5",
		fmt.Sprintf("transaction.state.log.replication.factor=%d", n.copies),
		"transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=5",
		"group.initial.rebalance.delay.ms=0",
		"group.min.session.timeout.ms=1000", // dead members are found as soon as a test wants
		"auto.create.topics.enable=false",
		"log.index.size.max.bytes=65536", // of each partition's two indexes, which are mapped whole when a topic is made
	}
	if n.killable {
		lines = append(lines, "broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500", "replica.lag.time.max.ms=5000")
	}
	if n.forgets {
		lines = append(lines, "log.retention.check.interval.ms=1000", "log.initial.task.delay.ms=1000")
	}
	return strings.Join(append(lines, n.secured.properties()...), "\n") + "\n"
}

// Secured configures TLS and denies what no rule allows. The listener
// of Addr stays open for setting up the node.
type Secured struct {
	Users       map[string]string // and their passwords
	Identity    string            // PEM file with the node's key and certificate
	Authorities string            // PEM file with those of the clients' certificates
	Keys        string            // JWKS file with the keys of tokens
	Audience    string            // of the tokens
}

// scrams are the mechanisms that don't send the password.
var scrams = []string{"SCRAM-SHA-256", "SCRAM-SHA-512"}

// credentials are the arguments of Kafka's tool that add users to
// a new cluster.
func (s *Secured) credentials() (args []string) {
	if s == nil {
		return nil
	}
	for name, password := range s.Users {
		for _, m := range scrams {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, name, password))
		}
	}
	return args
}

// options of Java. Since version 4, brokers read token keys only from
// the configured addresses.
func (s *Secured) options() []string {
	if s == nil {
		return nil
	}
	return []string{"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://" + s.Keys}
}

func (s *Secured) properties() []string {
	if s == nil {
		return nil
	}
	return append(s.signIn(),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_SSL,CERTIFIED:SSL",
		"inter.broker.listener.name=PLAINTEXT",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS;User:admin",
		"ssl.keystore.type=PEM",
		"ssl.keystore.location="+s.Identity,
		"ssl.truststore.type=PEM",
		"ssl.truststore.location="+s.Authorities,
		"listener.name.certified.ssl.client.auth=required",
		"ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/$1/,DEFAULT",
	)
}

// signIn are the properties of the listener for users.
func (s *Secured) signIn() []string {
	const users, oauth = "listener.name.users.", "org.apache.kafka.common.security.oauthbearer."
	plain := "org.apache.kafka.common.security.plain.PlainLoginModule required"
	for name, password := range s.Users {
		plain += fmt.Sprintf(" user_%s=%q", name, password)
	}
	lines := []string{
		"sasl.enabled.mechanisms=PLAIN,OAUTHBEARER," + strings.Join(scrams, ","),
		users + "plain.sasl.jaas.config=" + plain + ";",
		users + "oauthbearer.sasl.jaas.config=" + oauth + "OAuthBearerLoginModule required;",
		users + "oauthbearer.sasl.server.callback.handler.class=" + oauth + "OAuthBearerValidatorCallbackHandler",
		users + "oauthbearer.sasl.oauthbearer.jwks.endpoint.url=file://" + s.Keys,
		users + "oauthbearer.sasl.oauthbearer.expected.audience=" + s.Audience,
	}
	for _, m := range scrams {
		lines = append(lines, users+strings.ToLower(m)+".sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;")
	}
	return lines
}

// Rights that can be revoked.
type Rights = kmsg.ACLOperation

// All of them, and those needed for writing.
const (
	AllRights = kmsg.ACLOperationAny
	Writing   = kmsg.ACLOperationWrite
)

// Revoke takes rights on a topic from a principal, such as User:ledger.
func (b *Broker) Revoke(ctx context.Context, topic, principal string, rights Rights) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.DisableClientMetrics())
	if err != nil {
		return fmt.Errorf("cannot reach the node: %w", err)
	}
	defer client.Close()
	request, filter := kmsg.NewPtrDeleteACLsRequest(), kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourceName, filter.ResourcePatternType = kmsg.ACLResourceTypeTopic, &topic, kmsg.ACLResourcePatternTypeLiteral
	filter.Principal, filter.Operation, filter.PermissionType = &principal, rights, kmsg.ACLPermissionTypeAny
	request.Filters = append(request.Filters, filter)
	if _, err := request.RequestWith(ctx, client); err != nil {
		return fmt.Errorf("cannot take the rights of %s on %s: %w", principal, topic, err)
	}
	return nil
}

// Image is the image of Apache Kafka's containers.
func Image() string { return cmp.Or(os.Getenv("WEIR_TEST_KAFKA_IMAGE"), "apache/kafka:"+Version) }

// ContainerSettings are the variables for a container of apache/kafka,
// or a compatible image: one node that advertises a port of this
// machine. A setting a.b.c is the variable KAFKA_A_B_C.
func ContainerSettings(port int) map[string]string {
	return map[string]string{
		"KAFKA_NODE_ID":                                  "1",
		"KAFKA_PROCESS_ROLES":                            "broker,controller",
		"KAFKA_LISTENERS":                                "PLAINTEXT://:9092,CONTROLLER://:9093",
		"KAFKA_ADVERTISED_LISTENERS":                     fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", port),
		"KAFKA_CONTROLLER_LISTENER_NAMES":                "CONTROLLER",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":           "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":                 "1@localhost:9093",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":         "1",
		"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":             "5",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":            "1",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":         "0",
		"KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS":             "1000",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                "false",
		"JAVA_TOOL_OPTIONS":                              "-XX:TieredStopAtLevel=1", // of quickStart what images don't choose themselves
	}
}
