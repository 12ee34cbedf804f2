import static org.codelibs.opensearch.runner.OpenSearchRunner.newConfigs;

import org.codelibs.opensearch.runner.OpenSearchRunner;

/** One OpenSearch node: Server DIRECTORY PORT. It runs until its standard input ends. */
public class Server {
    public static void main(String[] args) throws Exception {
        OpenSearchRunner runner = new OpenSearchRunner();
        runner.onBuild((number, settings) -> {
            settings.put("http.port", args[1]);
            settings.put("discovery.type", "single-node");
        }).build(newConfigs().numOfNode(1).basePath(args[0]));
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
        runner.close();
    }
}
