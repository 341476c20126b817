package bench;

import com.google.protobuf.util.JsonFormat;
import com.linecorp.armeria.xds.ClusterSnapshot;
import com.linecorp.armeria.xds.ListenerRoot;
import com.linecorp.armeria.xds.ListenerSnapshot;
import com.linecorp.armeria.xds.RouteEntry;
import com.linecorp.armeria.xds.SnapshotWatcher;
import com.linecorp.armeria.xds.XdsBootstrap;
import com.linecorp.armeria.xds.XdsType;
import io.envoyproxy.envoy.config.bootstrap.v3.Bootstrap;
import io.envoyproxy.envoy.config.endpoint.v3.ClusterLoadAssignment;
import io.grpc.Status;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Predicate;

/**
 * Armeria's xDS client, which watches a listener with everything below it.
 *
 * <p>It prints {@code held} when all clusters have endpoints. Each line of its input is a cluster
 * and a port: it prints {@code +} when this is the first port of the cluster's endpoints. It ends
 * when its input does.
 */
public final class Tree implements SnapshotWatcher<ListenerSnapshot> {
  private static final String BOOTSTRAP =
      """
      {
        "node": {"id": "bench", "cluster": "bench"},
        "dynamic_resources": {
          "ads_config": {
            "api_type": "GRPC",
            "transport_api_version": "V3",
            "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}]
          },
          "lds_config": {"ads": {}, "resource_api_version": "V3"},
          "cds_config": {"ads": {}, "resource_api_version": "V3"}
        },
        "static_resources": {
          "clusters": [{
            "name": "xds",
            "type": "STATIC",
            "load_assignment": {
              "cluster_name": "xds",
              "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {
                "socket_address": {"address": "%s", "port_value": %s}}}}]}]
            }
          }]
        }
      }
      """;

  private ListenerSnapshot newest;

  @Override
  public synchronized void snapshotUpdated(ListenerSnapshot snapshot) {
    newest = snapshot;
    notifyAll();
  }

  /**
   * A response that was sent before a name was asked for does not have it, which Armeria takes for
   * an absence until the next response. A resource that stays away is waited for in vain.
   */
  @Override
  public void onMissing(XdsType type, String name) {}

  @Override
  public void onError(XdsType type, String name, Status error) {
    System.err.println("a resource was not accepted: " + type + " " + name + ": " + error);
    System.exit(1);
  }

  /** Returns when a snapshot is such. */
  private synchronized void await(Predicate<ListenerSnapshot> condition)
      throws InterruptedException {
    while (newest == null || !condition.test(newest)) {
      wait();
    }
  }

  private static List<RouteEntry> routes(ListenerSnapshot snapshot) {
    return snapshot.routeSnapshot().virtualHostSnapshots().get(0).routeEntries();
  }

  /** The clusters that have endpoints: the first routes go to one of them each, in order. */
  private static long resolved(ListenerSnapshot snapshot, int clusters) {
    return routes(snapshot).stream().limit(clusters).filter(route -> port(route) > 0).count();
  }

  private static int port(RouteEntry route) {
    ClusterSnapshot cluster = route.clusterSnapshot();
    if (cluster == null || cluster.endpointSnapshot() == null) {
      return 0;
    }
    ClusterLoadAssignment endpoints = cluster.endpointSnapshot().xdsResource().resource();
    return endpoints
        .getEndpoints(0)
        .getLbEndpoints(0)
        .getEndpoint()
        .getAddress()
        .getSocketAddress()
        .getPortValue();
  }

  /** Arguments: where xDS is served, the listener, and how many clusters there are. */
  public static void main(String[] arguments) throws Exception {
    String[] address = arguments[0].split(":");
    int clusters = Integer.parseInt(arguments[2]);
    Bootstrap.Builder bootstrap = Bootstrap.newBuilder();
    JsonFormat.parser().merge(BOOTSTRAP.formatted(address[0], address[1]), bootstrap);
    BufferedReader input =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (XdsBootstrap xds = XdsBootstrap.of(bootstrap.build());
        ListenerRoot root = xds.listenerRoot(arguments[1])) {
      Tree tree = new Tree();
      root.addSnapshotWatcher(tree);
      tree.await(snapshot -> resolved(snapshot, clusters) == clusters);
      System.out.println("held");
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        String[] wish = line.split(" ");
        int index = Integer.parseInt(wish[0].substring(wish[0].lastIndexOf('-') + 1));
        int port = Integer.parseInt(wish[1]);
        tree.await(snapshot -> port(routes(snapshot).get(index)) == port);
        System.out.println("+");
      }
    }
    System.exit(0);
  }
}
