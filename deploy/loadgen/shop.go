package loadgen

// A service is one program of the imagined shop.
type service struct {
	name     string
	hosts    int
	routine  []string // its lines when all is well; templates
	worries  []string // its warnings; templates
	failures []failure
}

var services = []service{
	{"storefront", 4, []string{
		"GET /products/{id} answered 200 in {ms} ms", "cart of {user} has {1~9} items", "POST /checkout answered 201 in {ms} ms",
	}, []string{"GET /search answered 200 in {900~4000} ms, which is slow", "session of {user} expired in the middle of a checkout"}, javaScript},
	{"billing", 2, []string{
		"invoice {id} rendered in {ms} ms", "payment reminder for invoice {id} queued", "exported {20~300} invoices",
	}, []string{"exchange rates are {2~9} hours old"}, python},
	{"search", 3, []string{
		"query took {ms} ms, {0~400} hits", "shard {0~16} merged {2~8} segments", "reindexed product {id}",
	}, []string{"shard {0~16} is {60~35} percent full"}, java},
	{"courier", 3, []string{
		"parcel {id} handed over at depot {0~40}", "route computed in {ms} ms over {3~20} hops",
	}, []string{"depot {0~40} did not answer, retry {1~3} of 3"}, golang},
	{"mailer", 2, []string{
		"mail {id} delivered to relay {ip} in {ms} ms", "template order_confirmation rendered",
	}, []string{"relay {ip} throttles: {1~20} mails wait"}, ruby},
	{"backoffice", 1, []string{
		"report {id} opened by {user}", "GET /orders?page={1~30} answered 200 in {ms} ms",
	}, []string{"deprecated function called by report {id}"}, php},
	{"payments", 2, []string{
		"payment {id} authorised in {ms} ms", "payment {id} captured", "settled {10~200} payments",
	}, []string{"bank answers slowly: {800~3000} ms"}, dotNet},
}

// A failure is one mistake in a program: it is one kind of error
// however often it happens, with any ids, on any host and a few lines
// up or down between releases. Texts are templates (see dice.expand).
type failure struct {
	log     string // the service's log line
	kind    string // the error's class
	message string
	frames  []string
}

var javaScript = []failure{
	{"checkout failed for order {id}", "TypeError", "Cannot read properties of undefined (reading 'total')", []string{
		"at Cart.total (/srv/shop/src/cart.js:{41~3}:{9~8})",
		"at checkout (/srv/shop/src/checkout.js:{88~4}:20)",
		"at Layer.handle [as handle_request] (/srv/shop/node_modules/express/lib/router/layer.js:95:5)",
		"at process.processTicksAndRejections (node:internal/process/task_queues:95:5)",
	}},
	{"price service did not answer", "FetchError", "request to http://{ip}:8080/prices/{id} failed, reason: connect ECONNREFUSED {ip}:8080", []string{
		"at ClientRequest.<anonymous> (/srv/shop/node_modules/node-fetch/lib/index.js:1501:11)",
		"at async loadPrices (/srv/shop/src/prices.js:{23~3}:18)",
	}},
}

var python = []failure{
	{"cannot render invoice {id}", "KeyError", "'vat_{id}'", []string{
		`File "/app/billing/api.py", line {61~4}, in render_invoice`,
		`File "/app/billing/invoice.py", line {118~5}, in totals`,
		`File "/app/billing/tax.py", line {17~2}, in rate_for`,
	}},
	{"database is slow", "psycopg.errors.QueryCanceled", "canceling statement due to statement timeout after {5000~900} ms", []string{
		`File "/app/billing/store.py", line {204~6}, in fetch_open_invoices`,
		`File "/usr/lib/python3.12/site-packages/psycopg/cursor.py", line 97, in execute`,
	}},
}

var java = []failure{
	{"search for user {user} failed", "java.lang.NullPointerException",
		`Cannot invoke "com.acme.search.Shard.lookup(String)" because "shard" is null`, []string{
			"at com.acme.search.Index.query(Index.java:{87~4})",
			"at com.acme.search.SearchController.search(SearchController.java:{42~2})",
			"at java.base/java.lang.reflect.Method.invoke(Method.java:580)",
			"at org.springframework.web.servlet.FrameworkServlet.service(FrameworkServlet.java:885)",
		}},
	{"index {hex} was not flushed", "java.util.concurrent.TimeoutException", "no answer from shard {0~16} within {2000~500} ms", []string{
		"at com.acme.search.Flusher.await(Flusher.java:{133~5})",
		"at com.acme.search.Flusher$$Lambda/0x00007f{hex}.run(Unknown Source)",
		"at java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1144)",
	}},
}

var golang = []failure{
	{"worker {0~15} died", "runtime.boundsError", "runtime error: index out of range [{7~9}] with length 7", []string{
		"main.(*Pool).take(0xc000{hex}, 0x{hex})", "\t/src/courier/pool.go:{71~3} +0x1d8",
		"main.(*Worker).run(0xc000{hex})", "\t/src/courier/worker.go:{29~2} +0x9c",
		"created by main.start in goroutine {12~80}", "\t/src/courier/main.go:44 +0x2b1",
	}},
	{"parcel {id} cannot be routed", "*courier.RouteError", "no route from {ip} to depot {0~40}", []string{
		"github.com/acme/courier/route.Find(...)", "\t/src/courier/route/find.go:{112~5}",
		"github.com/acme/courier.(*Service).Dispatch(0xc000{hex})", "\t/src/courier/service.go:{58~3} +0x44c",
	}},
}

var ruby = []failure{
	{"mail {id} was not sent", "NoMethodError", "undefined method 'display_name' for nil", []string{
		"/srv/mailer/app/models/recipient.rb:{31~2}:in 'greeting'",
		"/srv/mailer/app/mailers/order_mailer.rb:{18~3}:in 'confirmation'",
		"/usr/lib/ruby/gems/3.3.0/gems/actionmailer-7.1.3/lib/action_mailer/base.rb:{640~5}:in 'process'",
	}},
	{"relay refused mail {id}", "Net::SMTPServerBusy", "451 4.7.1 Try again later (queue {hex})", []string{
		"/srv/mailer/lib/relay.rb:{77~4}:in 'deliver'",
		"/srv/mailer/app/jobs/deliver_job.rb:{12~1}:in 'perform'",
	}},
}

var php = []failure{
	{"legacy report {id} failed", "PDOException", "SQLSTATE[HY000] [2002] Connection refused", []string{
		"#0 /var/www/backoffice/src/Orders.php({57~3}): PDO->__construct('mysql:host={ip}', 'report', Object(SensitiveParameterValue))",
		"#1 /var/www/backoffice/src/Report.php({102~4}): Acme\\Orders->open()",
		"#2 /var/www/backoffice/public/index.php(21): Acme\\Report->render({id})",
		"#3 {main}",
	}},
	{"customer {user} cannot be shown", "TypeError", "Acme\\Customer::format(): Argument #1 ($name) must be of type string, null given", []string{
		"#0 /var/www/backoffice/src/Customer.php({33~2}): Acme\\Customer->format(NULL)",
		"#1 {main}",
	}},
}

var dotNet = []failure{
	{"capture of payment {id} failed", "System.InvalidOperationException", "Sequence contains no elements", []string{
		"at System.Linq.ThrowHelper.ThrowNoElementsException()",
		"at Acme.Payments.Ledger.Latest(Guid account) in /src/Acme.Payments/Ledger.cs:line {133~5}",
		"at Acme.Payments.Gateway.<CaptureAsync>d__{12~3}.MoveNext() in /src/Acme.Payments/Gateway.cs:line {64~4}",
	}},
	{"bank did not confirm payment {id}", "System.Net.Http.HttpRequestException", "Connection refused ({ip}:443)", []string{
		"at Acme.Payments.BankClient.Confirm(String reference) in /src/Acme.Payments/BankClient.cs:line {48~2}",
		"at Acme.Payments.Gateway.Settle() in /src/Acme.Payments/Gateway.cs:line {91~3}",
	}},
}
