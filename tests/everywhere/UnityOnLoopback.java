import io.unitycatalog.server.UnityCatalogServer;

/** The server alone: its own main also starts a proxy that listens on every address. */
class UnityOnLoopback {
  public static void main(String[] arguments) {
    UnityCatalogServer.builder().port(Integer.parseInt(arguments[0])).build().start();
  }
}
