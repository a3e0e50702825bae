//go:build apache

package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/authority"
)

// secured is an Apache Kafka with TLS, authentication and ACLs, and one
// user with rights to the topics of these tests.
type secured struct {
	node           *apache.Broker
	trusted, other *authority.Authority
	issuer         *authority.Issuer
	signIn         []string
	certified      []string
	password       string // file
}

const audience = "kafka.weir.example"

func startSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{trusted: authority.New(t, "trusted", time.Now()), other: authority.New(t, "other", time.Now())}
	s.issuer = s.trusted.NewIssuer(t)
	identity := s.trusted.Issue(t, "broker", time.Now().Add(time.Hour), "127.0.0.1")
	s.password = fileWith(t, "open-sesame\n")
	var err error
	s.node, err = apache.Start(t.Context(), apache.Config{
		Dir: filepath.Join(t.TempDir(), "node"), Brief: true,
		Secured: &apache.Secured{Users: map[string]string{"weir": "open-sesame"}, Identity: identity.Both, Authorities: s.trusted.File, Keys: s.issuer.Keys, Audience: audience},
	})
	testenv.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.node.LogTail())
		}
		if err := s.node.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.signIn, s.certified = []string{s.node.SignInAddr()}, []string{s.node.CertificateAddr()}
	return s
}

// permit gives the user weir what the bus does with a topic and with
// the groups of its tests.
func (s *secured) permit(t *testing.T, topic string, operations cluster.Operations) {
	t.Helper()
	permissions := []cluster.Permission{{Principal: "User:weir", Name: topic, Operations: operations}}
	for _, group := range []string{topic, topic + ".group"} {
		permissions = append(permissions, cluster.Permission{Principal: "User:weir", Group: true, Name: group, Operations: cluster.Read})
	}
	testenv.Must(t, cluster.Permit(t.Context(), []string{s.node.Addr()}, nil, permissions))
}

const everything = cluster.Create | cluster.Read | cluster.Write | cluster.DescribeConfigs

func (s *secured) byPassword() bus.Access {
	return bus.Access{User: "weir", PasswordFile: s.password, CAFile: s.trusted.File}
}

func (s *secured) byToken(t *testing.T, token string) bus.Access {
	t.Helper()
	return bus.Access{Mechanism: "OAUTHBEARER", TokenFile: fileWith(t, token), CAFile: s.trusted.File}
}

func (s *secured) byCertificate(c authority.Certificate) bus.Access {
	return bus.Access{CertFile: c.Cert, KeyFile: c.Key, CAFile: s.trusted.File}
}

// Apache Kafka accepts a password, a token or a certificate over TLS,
// and nothing else. Each error is one line that names the setting.
// Replaced files are used without a restart.
func TestSecuredApacheKafka(t *testing.T) {
	s := startSecured(t)
	t.Run("let in", s.letsIn)
	t.Run("refused", s.refuses)
	t.Run("replaced", s.takesReplaced)
	t.Run("rights revoked", s.survivesRevokedRights)
	t.Run("users made", s.makesUsers)
	t.Run("quotas", s.showsQuotas)
	t.Run("broker's certificate", s.survivesExpired) // last: it ends with another certificate
}

func (s *secured) letsIn(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	for _, mechanism := range []string{"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"} {
		t.Run(mechanism, func(t *testing.T) {
			access, topic := s.byPassword(), "test.access."+strings.ToLower(mechanism)
			access.Mechanism = mechanism
			s.permit(t, topic, everything)
			signedIn(t, s.signIn, access, topic)
		})
	}
	t.Run("OAUTHBEARER", func(t *testing.T) {
		s.permit(t, "test.access.token", everything)
		signedIn(t, s.signIn, s.byToken(t, s.issuer.Token(t, "weir", audience, soon)), "test.access.token")
	})
	t.Run("certificate", func(t *testing.T) {
		s.permit(t, "test.access.certificate", everything)
		signedIn(t, s.certified, s.byCertificate(s.trusted.Issue(t, "weir", soon)), "test.access.certificate")
	})
}

func (s *secured) refuses(t *testing.T) {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	_, port, _ := net.SplitHostPort(s.signIn[0])
	stranger := s.byPassword()
	stranger.CAFile = s.other.File
	plain := bus.Access{User: "weir", PasswordFile: s.password}
	for name, c := range map[string]struct {
		access bus.Access
		broker string
		want   string
	}{
		"an authority that is not the broker's": {stranger, s.signIn[0], "name the file with its authority in WEIR_BROKERS_CA_FILE"},
		"a name that the certificate lacks":     {s.byPassword(), net.JoinHostPort("localhost", port), "is not for the name that WEIR_BROKERS"},
		"no TLS where it is spoken":             {plain, s.signIn[0], "set WEIR_BROKERS_TLS"},
		"TLS where it is not spoken":            {s.byPassword(), s.node.Addr(), "unset WEIR_BROKERS_TLS"},
		"no certificate of the client":          {s.byPassword(), s.certified[0], "name one with WEIR_BROKERS_CERT_FILE"},
		"a certificate of a stranger":           {s.byCertificate(s.other.Issue(t, "weir", soon)), s.certified[0], "truststore"},
		"a certificate that has expired":        {s.byCertificate(s.trusted.Issue(t, "weir", past)), s.certified[0], "replace it where that is past"},
		"a token that has expired":              {s.byToken(t, s.issuer.Token(t, "weir", audience, past)), s.signIn[0], "WEIR_BROKERS_TOKEN_FILE"},
		"a token for somebody else":             {s.byToken(t, s.issuer.Token(t, "weir", "elsewhere", soon)), s.signIn[0], "WEIR_BROKERS_TOKEN_FILE"},
	} {
		err := reach(t, c.broker, c.access)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	refusedSignIn(t, s.signIn, s.byPassword())
}

// takesReplaced replaces wrong files by right ones while a dialer is in use.
func (s *secured) takesReplaced(t *testing.T) {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	access := s.byCertificate(s.trusted.Issue(t, "weir", past))
	access.CAFile = fileWith(t, contentOf(t, s.other.File))
	dialer, err := access.Dialer()
	testenv.Must(t, err)
	connects := func() error { return cluster.Reach(t.Context(), s.certified[0], dialer) }
	if err := connects(); err == nil || !strings.Contains(err.Error(), "WEIR_BROKERS_CA_FILE") {
		t.Errorf("with another authority: %v", err)
	}
	overwrite(t, access.CAFile, contentOf(t, s.trusted.File))
	if err := connects(); err == nil || !strings.Contains(err.Error(), "replace it where that is past") {
		t.Errorf("with an expired certificate: %v", err)
	}
	good := s.trusted.Issue(t, "weir", soon)
	overwrite(t, access.CertFile, contentOf(t, good.Cert))
	overwrite(t, access.KeyFile, contentOf(t, good.Key))
	if err := connects(); err != nil {
		t.Errorf("with files that are right now: %v", err)
	}
	byToken := s.byToken(t, s.issuer.Token(t, "weir", audience, past))
	if dialer, err = byToken.Dialer(); err != nil {
		t.Fatal(err)
	}
	overwrite(t, byToken.TokenFile, s.issuer.Token(t, "weir", audience, soon))
	if err := cluster.Reach(t.Context(), s.signIn[0], dialer); err != nil {
		t.Errorf("with a token that is valid now: %v", err)
	}
}

// survivesRevokedRights takes the rights from a running publisher and
// consumer: nothing is lost, applied twice or parked, and both go on
// once they have them again.
func (s *secured) survivesRevokedRights(t *testing.T) {
	const topic = "test.revoked"
	s.permit(t, topic, everything)
	dialer, err := ensureAs(t, s.signIn, s.byPassword(), topic, testenv.Patience)
	testenv.Must(t, err)
	pool := bustest.Database(t)
	bustest.Effects(t, pool)
	cfg := bustest.QuickConsumer(s.signIn, topic, pool, bustest.WriteEffects)
	cfg.Dialer = dialer
	bustest.StartConsumer(t, cfg)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: s.signIn, Dialer: dialer})
	bustest.Publish(t, p, topic, 0, 10, 3)
	bustest.Applied(t, pool, 10)

	testenv.Must(t, s.node.Revoke(t.Context(), topic, "User:weir", apache.AllRights))
	testenv.Eventually(t, func() error { // the broker needs a moment
		_, err := p.PublishContext(t.Context(), topic, bustest.Keyed(1000, 1, 1)...)
		if !errors.Is(err, kafka.TopicAuthorizationFailed) {
			return errors.New("still published, or for another reason not")
		}
		return nil
	})
	open := bustest.NewPublisher(t, publisher.Config{Brokers: []string{s.node.Addr()}})
	bustest.Publish(t, open, topic, 10, 10, 3)
	s.permit(t, topic, everything)
	testenv.Eventually(t, func() error {
		_, err := p.PublishContext(t.Context(), topic, bustest.Keyed(20, 1, 1)...)
		return err
	})
	all := len(bustest.ReadAll(t, []string{s.node.Addr()}, topic))
	if bustest.Applied(t, pool, all); all < 21 {
		t.Errorf("%d records in the log", all)
	}
}

// survivesExpired has the broker serve an expired certificate, then a
// valid one: both without a restart of broker or client.
func (s *secured) survivesExpired(t *testing.T) {
	const topic = "test.expired"
	s.permit(t, topic, everything)
	dialer, err := ensureAs(t, s.signIn, s.byPassword(), topic, testenv.Patience)
	testenv.Must(t, err)
	p := bustest.NewPublisher(t, publisher.Config{Brokers: s.signIn, Dialer: dialer, DeliveryTimeout: testenv.Patience})
	s.serve(t, s.trusted.Issue(t, "broker", time.Now().Add(-time.Minute), "127.0.0.1"))
	testenv.Eventually(t, func() error { // it answers before it applies it
		err := cluster.Reach(t.Context(), s.signIn[0], dialer)
		if err == nil || !strings.Contains(err.Error(), "is out of date, replace it at the broker") {
			return fmt.Errorf("with an expired certificate: %w", err)
		}
		return nil
	})
	published := make(chan error, 1)
	go func() { // without a connection yet: retries until a certificate is valid
		_, err := p.PublishContext(context.Background(), topic, bustest.Keyed(0, 1, 1)...)
		published <- err
	}()
	s.serve(t, s.trusted.Issue(t, "broker", time.Now().Add(time.Hour), "127.0.0.1"))
	if err := <-published; err != nil {
		t.Error(err)
	}
	if n := len(bustest.ReadAll(t, []string{s.node.Addr()}, topic)); n != 1 {
		t.Errorf("%d records in the log", n)
	}
}

// makesUsers creates a user and changes its password.
func (s *secured) makesUsers(t *testing.T) {
	for _, password := range []string{"first", "second"} {
		testenv.Must(t, cluster.SetPasswords(t.Context(), []string{s.node.Addr()}, nil, map[string]string{"made": password}))
		access := bus.Access{User: "made", PasswordFile: fileWith(t, password), CAFile: s.trusted.File}
		testenv.Eventually(t, func() error { return reach(t, s.signIn[0], access) })
	}
	access := bus.Access{User: "made", PasswordFile: fileWith(t, "first"), CAFile: s.trusted.File}
	if err := reach(t, s.signIn[0], access); err == nil || !strings.Contains(err.Error(), "refuses the user or the password") {
		t.Errorf("with the former password: %v", err)
	}
	if err := cluster.SetPasswords(t.Context(), []string{s.node.Addr()}, nil, map[string]string{"": "nobody's"}); err == nil {
		t.Error("there is a user without a name")
	}
}

// showsQuotas sets a quota, which who has the right sees.
func (s *secured) showsQuotas(t *testing.T) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.node.Addr()), kgo.DisableClientMetrics())
	testenv.Must(t, err)
	defer client.Close()
	request, entry := kmsg.NewPtrAlterClientQuotasRequest(), kmsg.NewAlterClientQuotasRequestEntry()
	entry.Entity = []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: kmsg.StringPtr("ingest")}}
	entry.Ops = []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 1024}}
	request.Entries = append(request.Entries, entry)
	answer, err := request.RequestWith(t.Context(), client)
	testenv.Must(t, err)
	testenv.Must(t, kerr.ErrorForCode(answer.Entries[0].ErrorCode))
	dialer, err := s.byPassword().Dialer()
	testenv.Must(t, err)
	if found, err := cluster.Quotas(t.Context(), s.signIn, dialer); !errors.Is(err, cluster.ErrQuotasUnseen) {
		t.Errorf("without the right: %v, %v", found, err)
	}
	testenv.Must(t, cluster.Permit(t.Context(), []string{s.node.Addr()}, nil,
		[]cluster.Permission{{Principal: "User:weir", Cluster: true, Operations: cluster.DescribeConfigs}}))
	testenv.Eventually(t, func() error {
		found, err := cluster.Quotas(t.Context(), s.signIn, dialer)
		if err == nil && (len(found) != 1 || found[0].Of["user"] != "ingest" || found[0].Rates["producer_byte_rate"] != 1024) {
			err = fmt.Errorf("found %v", found)
		}
		return err
	})
}

// serve replaces the certificate of the users' listener.
func (s *secured) serve(t *testing.T, identity authority.Certificate) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.node.Addr()), kgo.DisableClientMetrics())
	testenv.Must(t, err)
	defer client.Close()
	request, resource := kmsg.NewPtrIncrementalAlterConfigsRequest(), kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeBroker, "1"
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "listener.name.users.ssl.keystore.location", &identity.Both
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(t.Context(), client)
	testenv.Must(t, err)
	for _, r := range answer.Resources {
		if r.ErrorCode != 0 {
			t.Fatalf("the broker keeps its certificate: %v", *r.ErrorMessage)
		}
	}
}

func reach(t *testing.T, address string, access bus.Access) error {
	t.Helper()
	dialer, err := access.Dialer()
	if err != nil {
		return err
	}
	return cluster.Reach(t.Context(), address, dialer)
}

func fileWith(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	overwrite(t, file, content)
	return file
}

func overwrite(t *testing.T, file, content string) {
	t.Helper()
	testenv.Must(t, os.WriteFile(file, []byte(content), 0o600))
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	testenv.Must(t, err)
	return string(raw)
}
