package apache

import (
	"fmt"
	"strings"
)

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
