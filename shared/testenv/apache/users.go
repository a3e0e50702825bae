package apache

import "fmt"

// mechanisms are the ways of signing in that keep the password to themselves.
var mechanisms = []string{"SCRAM-SHA-256", "SCRAM-SHA-512"}

// listeners are those of clients.
func (n node) listeners() string {
	if len(n.users) == 0 {
		return "PLAINTEXT://" + n.addr
	}
	return fmt.Sprintf("PLAINTEXT://%s,USERS://%s", n.addr, n.signIn)
}

// credentials are the arguments by which Kafka's tool puts users into a new cluster.
func (n node) credentials() (args []string) {
	for name, password := range n.users {
		for _, m := range mechanisms {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, name, password))
		}
	}
	return args
}

// signInProperties are those of the listener for users.
func (n node) signInProperties() []string {
	if len(n.users) == 0 {
		return nil
	}
	plain := "org.apache.kafka.common.security.plain.PlainLoginModule required"
	for name, password := range n.users {
		plain += fmt.Sprintf(" user_%s=%q", name, password)
	}
	lines := []string{
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT",
		"inter.broker.listener.name=PLAINTEXT",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.users.plain.sasl.jaas.config=" + plain + ";",
	}
	for _, m := range []string{"scram-sha-256", "scram-sha-512"} {
		lines = append(lines, "listener.name.users."+m+".sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;")
	}
	return lines
}
